// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/transfers.hpp"

namespace horo::runtime {

Status LocalTransfers::add_splits(const Entry& entry, std::size_t at,
                                  std::vector<std::uint64_t>& rows) {
  const TensorId id{static_cast<std::uint32_t>(entry.ids[at])};
  const auto members = board_.region().local_size();
  for (int m = 0; m < members; ++m) {
    const auto* const sent = board_.directory().memory().splits(id, m, claims_.tensor(id).parity);
    if (sent == nullptr) {
      return fail(Errc::protocol, "tensor '{}' has no place for splits on the board",
                  board_.region().tensor_name(id));
    }
    rows.insert(rows.end(), sent, sent + members);
  }
  return {};
}

}  // namespace horo::runtime
