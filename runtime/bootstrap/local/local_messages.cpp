// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/local_messages.hpp"

#include <utility>

namespace horo::runtime::bootstrap {

namespace {

constexpr std::uint32_t kMagic = 0x544d4f48;  // "HOMT"
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::string encode(const LocalMessage& message) {
  ByteWriter out;
  out.fixed(kMagic).fixed(kVersion).fixed(type_of(message));
  write_message(out, message);
  return out.take();
}

Result<LocalMessage> decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto magic = in.fixed<std::uint32_t>();
  const auto version = in.fixed<std::uint32_t>();
  const auto kind = in.fixed<std::uint32_t>();
  if (magic != kMagic)
    return fail(Errc::protocol,
                "the process at the socket of this host's ranks is not a rank of horo");
  if (version != kVersion) {
    return fail(Errc::version_mismatch,
                "a rank of this host has version {} of the start-up protocol, this libhoro {}; "
                "install the same horo for all ranks",
                version, kVersion);
  }
  if (auto message = read_message<LocalMessage>(kind, in)) return std::move(*message);
  return fail(Errc::protocol, "a rank of this host sent an invalid message: {}", in.problem());
}

}  // namespace horo::runtime::bootstrap
