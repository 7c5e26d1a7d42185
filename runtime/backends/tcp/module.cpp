// SPDX-License-Identifier: Apache-2.0
// The module `tcp`: collectives between hosts over Horo's own TCP connections.
#include "runtime/backends/module.hpp"

#include <algorithm>

#include "base/deadline.hpp"
#include "runtime/backends/flat/make_flat.hpp"
#include "runtime/backends/tcp/tcp_contacts.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

namespace horo::runtime {

namespace {

Status probe() {
  return {};
}

/// Fills in the endpoint's contacts, unless it knows all members. The first set of a session has
/// all its ranks, so only the first set exchanges addresses.
Status meet(TcpEndpoint& endpoint, TcpTransport& transport, const Communicator& communicator) {
  auto& contacts = endpoint.contacts();
  const auto known = [&](int rank) { return contacts.contains(rank); };
  const auto& members = communicator.members;
  if (!std::all_of(members.begin(), members.end(), known)) {
    const auto deadline = Deadline::in(SteadyClock::instance(), communicator.start_timeout);
    ContactExchange exchange(members, communicator.name, communicator.position,
                             *communicator.meeting);
    HORO_TRY_STATUS(exchange.gather(endpoint.contact(), deadline));
    contacts.merge(exchange.contacts());
    transport.take_addresses();
    transport.begin_start(exchange.spread_limit(deadline), communicator.lost);
    HORO_TRY_STATUS(exchange.spread(transport));
    transport.end_start(communicator.timeout);
    contacts.merge(exchange.contacts());
  }
  transport.take_addresses();
  return {};
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  HORO_TRY(auto endpoint, endpoint_of(communicator));
  const int workers =
      TcpTransport::workers_of(communicator.size(), static_cast<int>(endpoint->rails().size()));
  HORO_TRY(auto transport,
           TcpTransport::make(endpoint, communicator, static_cast<std::uint32_t>(workers)));
  HORO_TRY_STATUS(meet(*endpoint, *transport, communicator)
                      .context(fmt::format("connecting rank {} of {} over TCP",
                                           communicator.position, communicator.size())));
  // The workers move all bytes themselves.
  return make_flat("tcp", std::move(transport), communicator, workers, MessageMemory::tensors);
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "tcp", .probe = &horo::runtime::probe, .make = &horo::runtime::make,
                    .exchange = nullptr, .open_device = nullptr);
