// SPDX-License-Identifier: Apache-2.0
// The networks that connect a rank with the others at once, one per interface of its host. Worker i
// of every rank uses rail i modulo their number, so the connections of a pair use all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv/address.hpp"
#include "base/result.hpp"

namespace horo::runtime {

struct TcpRail {
  std::string interface;  ///< Empty: the one that has the address.
  std::string address;    ///< This host's own, a number.
};

/// Where a rank listens, by rail; the port is the same on all.
using TcpContact = std::vector<kv::Address>;

/// The rails of interfaces in the form "eth0,eth1". Fails: invalid_argument (one has no IP address
/// here, or as check_apart).
Result<std::vector<TcpRail>> rails_of(std::string_view interfaces);

/// Fails: invalid_argument (an interface is named twice, or two have one address, at which only one
/// listener has room).
Status check_apart(std::span<const TcpRail> rails);

}  // namespace horo::runtime
