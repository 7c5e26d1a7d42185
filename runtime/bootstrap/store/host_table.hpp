// SPDX-License-Identifier: Apache-2.0
// How ranks learn which ranks share a host, and which hosts the job has. The messages and the pure
// functions on them, and the side of rank 0, which collects the messages through the store.
// docs/design/standalone.md has the bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/meeting/bootstrap_forms.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/bootstrap/store/store_requests.hpp"

template <>
struct horo::FieldsOf<horo::runtime::bootstrap::JobHost> {
  static void visit(auto& field, auto& host) {
    using namespace runtime::bootstrap;  // NOLINT(google-build-using-namespace): a part of it
    field("name", host.name, kText);
    field("address", host.address, kText);
    field("ranks", host.ranks, RankRuns{});
  }
};

namespace horo::runtime::bootstrap {

/// The first rank of a host describes it.
struct HostReport {
  JobHost host;             ///< Its `address` is the one from which it reached the store.
  std::string server_host;  ///< The address at which it reached the store.

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fields{});
    field("server_host", m.server_host, kText);
  }
};

/// All hosts, in the order of their lowest ranks, and the epoch that rank 0 gives.
struct HostTable {
  std::uint64_t epoch = 1;
  std::vector<JobHost> hosts;

  static void fields(auto& field, auto& m) {
    field("epoch", m.epoch, wire::Fixed{});
    field("hosts", m.hosts, list(wire::Fields{}, 16));
  }
};

std::string encode(const HostReport& report);
std::string encode(const HostTable& table);
Result<HostReport> decode_host_report(std::string_view bytes);
/// Also checks that every rank of a job of `size` is on exactly one host. Fails: protocol.
Result<HostTable> decode_table(std::string_view bytes, int size);

/// The table of the hosts in `reports`, of which one is from rank 0's host. If rank 0's host
/// reached the store by loopback, its address is the one at which another host reached the store.
HostTable make_table(std::vector<HostReport> reports, std::uint64_t epoch);

/// A rank asks for its place among the ranks of its host.
struct PlaceRequest {
  std::int32_t rank = 0;
  std::string host_key;  ///< The same on all ranks of a host.

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Fixed{});
    field("host_key", m.host_key, kText);
  }

  static std::string_view check(const PlaceRequest& m) {
    return m.rank >= 0 ? "" : "has a negative rank";
  }
};

struct LocalPosition {
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;

  static void fields(auto& field, auto& m) {
    field("local_rank", m.local_rank, wire::Fixed{});
    field("local_size", m.local_size, wire::Fixed{});
  }

  static std::string_view check(const LocalPosition& m) {
    return m.local_rank >= 0 && m.local_rank < m.local_size
               ? ""
               : "has a local rank that is not below the local size";
  }
};

std::string encode(const PlaceRequest& request);
std::string encode(const LocalPosition& position);
Result<PlaceRequest> decode_place_request(std::string_view bytes);
Result<LocalPosition> decode_local_position(std::string_view bytes);

/// The position of each rank, from the host key of each rank. Pure.
std::vector<LocalPosition> place_on_hosts(const std::vector<std::string>& host_keys);

/// Called by rank 0 of `size`, whose own key is `host_key`: replies to all other ranks. Blocks.
/// Fails: timed_out (names the ranks that have not asked), protocol.
Result<LocalPosition> collect_places(RequestCollector& collector, kv::Client& client, int size,
                                     const std::string& host_key, const Deadline& deadline);

/// Called by the first rank of rank 0's host: replies to the first ranks of all other hosts, which
/// call ask_for_hosts(). Blocks. Fails: as collect_places(), and cancelled.
Result<HostTable> collect_hosts(RequestCollector& collector, kv::Client& client, int size,
                                HostReport own, std::uint64_t epoch, const WaitLimit& limit);

/// Reports `own` to the collector of `topic` and returns the table of all hosts. Blocks. Fails: as
/// send_request(); protocol.
Result<HostTable> ask_for_hosts(kv::Client& client, std::string_view topic, int size,
                                const HostReport& own, const WaitLimit& limit);

}  // namespace horo::runtime::bootstrap
