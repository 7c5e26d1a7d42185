// SPDX-License-Identifier: Apache-2.0
// The networks of this machine. Routes come from the kernel, and are never guessed from names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

struct Interface {
  std::string name;
  std::vector<std::string> addresses;  ///< With the length of the network prefix: "10.0.0.1/24".
  bool up = false;                     ///< True only if it has a carrier.
  bool loopback = false;
  std::optional<int> megabits;  ///< Its speed, if the driver reports it.
};

/// The interfaces in the kernel's order. Fails: io.
Result<std::vector<Interface>> list_interfaces();

/// The way from this machine to another one.
struct Route {
  std::string address;    ///< Address of the other machine.
  std::string source;     ///< Address of this machine, as the other sees it.
  std::string interface;  ///< Packets leave through this interface.
};

/// The route to `host`, a name or an address. Nothing is sent to it. Blocks: for the name service.
/// Fails: not_found (no such name), unavailable (no route).
Result<Route> route_to(const std::string& host);

}  // namespace horo::discovery
