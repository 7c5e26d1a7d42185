// SPDX-License-Identifier: Apache-2.0
// The module `tcp`: collectives between hosts over Horo's own TCP connections.
#include "runtime/backends/module.hpp"

#include "runtime/backends/flat/flat_backend.hpp"
#include "runtime/backends/flat/segment.hpp"
#include "runtime/backends/tcp/tcp_contacts.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

namespace horo::runtime {

namespace {

Status probe() {
  return {};
}

/// A connection for each worker and peer, but in large sets fewer, because a process may have only
/// 1,024 descriptors.
int workers_of(int ranks) {
  constexpr int kMany = 128;
  return ranks <= kMany ? 3 : 1;
}

Result<std::unique_ptr<Backend>> make(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  const int workers = workers_of(communicator.size());
  HORO_TRY(auto endpoint, endpoint_of(communicator));
  HORO_TRY(auto transport,
           TcpTransport::make(endpoint, communicator, static_cast<std::uint32_t>(workers)));
  HORO_TRY_STATUS(exchange_contacts(*endpoint, communicator)
                      .context(fmt::format("connecting rank {} of {} over TCP",
                                           communicator.position, communicator.size())));
  transport->take_addresses();
  const Mesh mesh{.position = communicator.position,
                  .size = communicator.size(),
                  .shares_hosts = shares_hosts(communicator),
                  .rank_order = communicator.rank_order};
  return std::unique_ptr<Backend>(
      std::make_unique<FlatBackend>(std::move(transport), mesh,
                                    FlatOptions{.name = "tcp",
                                                .segment = segment_bytes(communicator.size()),
                                                .workers = workers,
                                                .notify = communicator.notify}));
}

}  // namespace

}  // namespace horo::runtime

HORO_BACKEND_MODULE(.name = "tcp", .probe = &horo::runtime::probe, .make = &horo::runtime::make,
                    .exchange = nullptr, .open_device = nullptr);
