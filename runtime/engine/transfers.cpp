// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/transfers.hpp"

#include <algorithm>
#include <numeric>

namespace horo::runtime {

Result<const std::uint64_t*> LocalTransfers::splits_of(TensorId id, int member) const {
  const auto* const sent =
      board_.directory().memory().splits(id, member, claims_.tensor(id).parity);
  if (sent != nullptr) return sent;
  return fail(Errc::protocol, "tensor '{}' has no place for splits on the board",
              board_.region().tensor_name(id));
}

Status LocalTransfers::add_splits(const Entry& entry, std::size_t at,
                                  std::vector<PeerRows>& peers) {
  const auto id = id_at(entry, at);
  const int me = board_.region().me();
  HORO_TRY(const auto* const mine, splits_of(id, me));
  for (int m = 0; m < board_.region().local_size(); ++m) {
    HORO_TRY(const auto* const theirs, splits_of(id, m));
    peers.push_back({.sent = mine[m],
                     .received = theirs[me],
                     .before = std::accumulate(theirs, theirs + me, std::uint64_t{0})});
  }
  return {};
}

Result<std::uint64_t> LocalTransfers::longest_of(const Entry& entry) {
  const int members = board_.region().local_size();
  std::uint64_t longest = 0;
  for (int from = 0; from < members; ++from) {
    for (int to = 0; to < members; ++to) {
      std::uint64_t sent = 0;
      for (std::size_t at = 0; at < entry.ids.size(); ++at) {
        const auto id = id_at(entry, at);
        HORO_TRY(const auto* const splits, splits_of(id, from));
        // Other processes can write there: no sum may overflow.
        const auto row = claims_.signature(id).row_elements;
        const auto rows = splits[to];
        if (row == 0) continue;
        if (rows > kMostElements / row || sent > kMostElements - rows * row) {
          return fail(Errc::protocol, "the board claims that member {} sends {} rows of '{}'", from,
                      rows, board_.region().tensor_name(id));
        }
        sent += rows * row;
      }
      longest = std::max(longest, sent);
    }
  }
  return longest;
}

}  // namespace horo::runtime
