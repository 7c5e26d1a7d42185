// SPDX-License-Identifier: Apache-2.0
// The networks of this machine: what leads where, asked of the kernel's routes and never guessed
// from names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

struct Interface {
  std::string name;
  std::vector<std::string> addresses;  ///< With the length of their network: "10.0.0.1/24".
  bool up = false;                     ///< It has a carrier too.
  bool loopback = false;
  std::optional<int> megabits;  ///< Its speed, where the driver says.
};

/// In the kernel's order. Fails: io.
Result<std::vector<Interface>> list_interfaces();

/// How this machine reaches another.
struct Route {
  std::string address;    ///< The other's.
  std::string source;     ///< Ours, which the other sees.
  std::string interface;  ///< It leaves by this one.
};

/// By which interface `host`, a name or an address, is reached; nothing is sent to it. Blocks: for
/// the name service. Fails: not_found (no such name), unavailable (no route).
Result<Route> route_to(const std::string& host);

}  // namespace horo::discovery
