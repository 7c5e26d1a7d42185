// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::runtime::tree {

/// The port at which a leader's children connect. It is opened before the leaders know each other's
/// addresses.
struct LeaderListener {
  UniqueFd socket;
  std::uint16_t port = 0;

  /// Listens at a free port of `address`, a number; empty: of every interface. Fails:
  /// invalid_argument, unavailable, io.
  static Result<LeaderListener> open(const std::string& address);
};

}  // namespace horo::runtime::tree
