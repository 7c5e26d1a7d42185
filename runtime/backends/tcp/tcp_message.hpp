// SPDX-License-Identifier: Apache-2.0
// One message between two ranks: 16 bytes of header, tag and length as little-endian numbers, and
// the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/backends/flat/transport.hpp"

namespace horo::runtime {

inline constexpr std::size_t kTcpHeaderBytes = 16;

using TcpHeader = std::array<std::uint8_t, kTcpHeaderBytes>;

inline TcpHeader header_of(const TransportMessage& message) {
  TcpHeader header{};
  for (std::size_t i = 0; i < 8; ++i) {
    header[i] = static_cast<std::uint8_t>(message.tag >> (8 * i));
    header[8 + i] = static_cast<std::uint8_t>(message.bytes >> (8 * i));
  }
  return header;
}

/// A message that is posted, and how far it is.
struct TcpTransfer {
  explicit TcpTransfer(const TransportMessage& posted)
      : message(posted), header(header_of(posted)) {}

  std::uint64_t size() const { return kTcpHeaderBytes + message.bytes; }

  bool done() const { return moved == size(); }

  const TransportMessage message;
  TcpHeader header;         ///< To be sent; of a receive the header that must come.
  std::uint64_t moved = 0;  ///< Bytes, header included.
};

}  // namespace horo::runtime
