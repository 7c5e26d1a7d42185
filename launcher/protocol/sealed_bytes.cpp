// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/sealed_bytes.hpp"

#include <algorithm>
#include <span>

#include "base/kv/kv_messages.hpp"

namespace horo::launcher::protocol {

namespace {

constexpr std::size_t kRecord = std::size_t{64} << 10U;

}  // namespace

void SealedBytes::wrap(std::string_view bytes, std::string& to) {
  while (!bytes.empty()) {
    const auto part = bytes.substr(0, kRecord);
    kv::append_frame(to, part, seals_.outgoing);
    bytes.remove_prefix(part.size());
  }
}

Result<std::string> SealedBytes::unwrap(std::string_view received) {
  received_ += received;
  std::string bytes;
  std::size_t taken = 0;
  while (received_.size() - taken >= kv::kLengthBytes) {
    const auto rest = as_bytes(received_).subspan(taken);
    HORO_TRY(const auto length, kv::decode_length(rest.first(kv::kLengthBytes), kRecord));
    const auto whole = kv::kLengthBytes + length + kv::kTagBytes;
    if (rest.size() < whole) break;
    const auto record = std::span(received_).subspan(taken + kv::kLengthBytes, length);
    if (!kv::opens(seals_.incoming, record, rest.subspan(kv::kLengthBytes + length, kv::kTagBytes)))
      return fail(Errc::protocol, "a message was changed, repeated or left out on its way");
    bytes.append(record.data(), record.size());
    taken += whole;
  }
  received_.erase(0, taken);
  return bytes;
}

}  // namespace horo::launcher::protocol
