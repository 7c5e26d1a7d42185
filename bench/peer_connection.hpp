// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"

namespace horo::bench {

/// One connection to the other process of bench_transport. Blocks: each call, until the message has
/// come, or until its memory may be written again.
class PeerConnection {
 public:
  virtual ~PeerConnection() = default;
  virtual Status send(std::span<std::byte> message) = 0;
  virtual Status receive(std::span<std::byte> message) = 0;
};

}  // namespace horo::bench
