// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job learn where each of them listens.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/kv/address.hpp"
#include "base/result.hpp"
#include "runtime/backends/tcp/tcp_endpoint.hpp"

namespace horo::runtime {

/// The endpoint that the communicator's session has already, or a new one, at the address or
/// interface that the communicator names, else at one that the others reach. Blocks: as
/// reachable_address(). Fails: invalid_argument (no such address or interface), unavailable, io,
/// and as reachable_address().
Result<std::shared_ptr<TcpEndpoint>> endpoint_of(const Communicator& communicator);

/// Fills in the endpoint's contacts, unless it knows all members. The first set of a session has
/// all its ranks, so only the first set uses the store: each rank puts one record there, the first
/// member joins them to one table, and the others read that. Blocks: until all members have come,
/// at most `start_timeout`. Fails: timed_out (names the key of the rank that is missing),
/// protocol, and as the store.
Status exchange_contacts(TcpEndpoint& endpoint, const Communicator& communicator);

/// One line for each rank: "RANK HOST:PORT".
std::string encode_contacts(const std::map<int, kv::Address>& contacts);

/// Fails: protocol.
Result<std::map<int, kv::Address>> decode_contacts(std::string_view text);

}  // namespace horo::runtime
