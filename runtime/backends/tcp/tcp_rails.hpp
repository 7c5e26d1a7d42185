// SPDX-License-Identifier: Apache-2.0
// The networks that connect a rank with the others at once, one per interface of its host. Worker i
// of every rank uses rail i modulo their number, so the connections of a pair use all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::runtime {

struct TcpRail {
  std::string interface;  ///< Empty: the one that has the address.
  std::string address;    ///< This host's own, a number.
  int prefix = 0;         ///< Bits of the address that all hosts of the network share.
};

/// The rails of interfaces in the form "eth0,eth1". Fails: invalid_argument (one has no IP address
/// here, or as check_apart).
Result<std::vector<TcpRail>> rails_of(std::string_view interfaces);

/// Fails: invalid_argument (an interface is named twice, or two have one address, at which only one
/// listener has room).
Status check_apart(std::span<const TcpRail> rails);

/// The one of another host's addresses that is in the rail's network; null: none is.
const std::string* address_on(const TcpRail& rail, std::span<const std::string> addresses);

}  // namespace horo::runtime
