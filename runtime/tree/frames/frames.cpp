// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/frames.hpp"

#include <utility>

// GCC 12 takes a variant's unused alternatives for uninitialised when it inlines its move.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace horo::runtime::tree {

std::string encode(Epoch epoch, const Frame& frame) {
  ByteWriter out;
  out.fixed(static_cast<std::uint8_t>(type_of(frame))).varint(epoch.value());
  write_message(out, frame);
  return out.take();
}

Result<Envelope> decode(BytesView payload) {
  if (payload.size() > kMostPayload) {
    return fail(Errc::protocol, "a frame of {} bytes; at most {} are allowed", payload.size(),
                kMostPayload);
  }
  ByteReader in(payload);
  const auto type = in.fixed<std::uint8_t>();
  const Epoch epoch{in.varint()};
  if (auto frame = read_message<Frame>(type, in))
    return Envelope{.epoch = epoch, .frame = std::move(*frame)};
  return fail(Errc::protocol, "a malformed frame of {} bytes (type {}): {}", payload.size(), type,
              in.problem());
}

}  // namespace horo::runtime::tree
