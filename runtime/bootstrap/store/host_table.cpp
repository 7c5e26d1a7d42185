// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/host_table.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/net/own_addresses.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kReadTime = std::chrono::seconds(30);

/// The table of an epoch is in the store once: a host with a reply of its own would get a copy of
/// its own, which rank 0's host would have to send first.
std::string table_key(std::uint64_t epoch) {
  return fmt::format("horo/hosts/table/{}", epoch);
}

/// The reply to a host's report.
struct TablePlace {
  std::uint64_t epoch = 1;

  static void fields(auto& field, auto& m) { field("epoch", m.epoch, wire::Fixed{}); }
};

std::string list_missing(const std::vector<bool>& have) {
  std::string text;
  for (std::size_t rank = 0; rank < have.size(); ++rank) {
    if (have[rank]) continue;
    if (text.size() > 200) return text + ", ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

/// Refuses all `requests` because no further one came; names the ranks that are still missing if
/// the time is over.
Failure give_up(RequestCollector& collector, kv::Client& client,
                const std::vector<RequestCollector::Request>& requests, Error error,
                const std::vector<bool>& have) {
  // The wait of the other hosts was cancelled, too: none of them reads a refusal.
  if (error.code == Errc::cancelled) return Failure(std::move(error));
  if (error.code == Errc::timed_out) {
    error.message = fmt::format(
        "rank {} did not come to rank 0's store in time; raise HORO_START_TIMEOUT if it is only "
        "slow",
        list_missing(have));
  }
  collector.close(client);
  collector.refuse(client, requests, error);
  return Failure(std::move(error));
}

/// The reports of the other hosts that rank 0's host has collected.
class HostReports {
 public:
  HostReports(HostReport own, int size)
      : own_(std::move(own)),
        size_(static_cast<std::size_t>(size)),
        ranks_(own_.host.ranks.size()) {}

  bool complete() const { return ranks_ >= size_; }

  /// A later report of the same host replaces the earlier one, whose sender has given up.
  void add(HostReport report, RequestCollector::Request request) {
    const auto first = report.host.ranks.front().value();
    const auto before = hosts_.find(first);
    if (before != hosts_.end()) ranks_ -= before->second.first.host.ranks.size();
    ranks_ += report.host.ranks.size();
    hosts_.insert_or_assign(first, std::pair(std::move(report), std::move(request)));
  }

  /// By rank: its host has reported.
  std::vector<bool> covered() const {
    std::vector<bool> have(size_);
    const auto add = [&have](const JobHost& host) {
      for (const auto rank : host.ranks) {
        if (rank.index() < have.size()) have[rank.index()] = true;
      }
    };
    add(own_.host);
    for (const auto& [first, entry] : hosts_) add(entry.first.host);
    return have;
  }

  HostTable table(std::uint64_t epoch) const {
    std::vector<HostReport> reports{own_};
    for (const auto& [first, entry] : hosts_) reports.push_back(entry.first);
    return make_table(std::move(reports), epoch);
  }

  Status reply(RequestCollector& collector, kv::Client& client, std::string_view text,
               const Deadline& deadline) const {
    for (const auto& [first, entry] : hosts_)
      HORO_TRY_STATUS(collector.reply(client, entry.second, text, deadline));
    return {};
  }

 private:
  const HostReport own_;
  const std::size_t size_;
  std::size_t ranks_;  ///< Ranks of the hosts that have reported.
  std::unordered_map<int, std::pair<HostReport, RequestCollector::Request>>
      hosts_;  // By first rank.
};

}  // namespace

// -- Messages -----------------------------------------------------------------------------------

std::string encode(const HostReport& report) {
  return encode_fields(report);
}

std::string encode(const HostTable& table) {
  return encode_fields(table);
}

std::string encode(const PlaceRequest& request) {
  return encode_fields(request);
}

std::string encode(const LocalPosition& position) {
  return encode_fields(position);
}

Result<HostReport> decode_host_report(std::string_view bytes) {
  return decode_fields<HostReport>(as_bytes(bytes), "a host's report");
}

Result<HostTable> decode_table(std::string_view bytes, int size) {
  HORO_TRY(auto table, decode_fields<HostTable>(as_bytes(bytes), "the table of hosts"));
  std::vector<bool> have(static_cast<std::size_t>(size));
  std::size_t ranks = 0;
  for (const auto& host : table.hosts) {
    for (const auto rank : host.ranks) {
      if (rank.value() >= size || have[rank.index()]) {
        return fail(Errc::protocol, "the table of hosts has rank {} twice, or beyond {} ranks",
                    rank, size);
      }
      have[rank.index()] = true;
      ++ranks;
    }
  }
  if (ranks == have.size()) return table;
  return fail(Errc::protocol, "the table of hosts lacks rank {}", list_missing(have));
}

Result<PlaceRequest> decode_place_request(std::string_view bytes) {
  return decode_fields<PlaceRequest>(as_bytes(bytes), "a rank's request for its place");
}

Result<LocalPosition> decode_local_position(std::string_view bytes) {
  return decode_fields<LocalPosition>(as_bytes(bytes), "the place that rank 0 gives");
}

// -- Pure parts ---------------------------------------------------------------------------------

HostTable make_table(std::vector<HostReport> reports, std::uint64_t epoch) {
  std::sort(reports.begin(), reports.end(), [](const HostReport& a, const HostReport& b) {
    const auto lowest = [](const HostReport& report) {
      return *std::min_element(report.host.ranks.begin(), report.host.ranks.end());
    };
    return lowest(a) < lowest(b);
  });
  auto& first = reports.front().host;
  const auto found = std::find_if(reports.begin(), reports.end(), [](const HostReport& report) {
    return !report.server_host.empty() && !is_loopback(report.server_host);
  });
  if (is_loopback(first.address) && found != reports.end()) first.address = found->server_host;
  HostTable table{.epoch = epoch, .hosts = {}};
  for (auto& report : reports) table.hosts.push_back(std::move(report.host));
  return table;
}

std::vector<LocalPosition> place_on_hosts(const std::vector<std::string>& host_keys) {
  std::unordered_map<std::string_view, int> counts;
  std::vector<LocalPosition> places;
  for (const auto& key : host_keys)
    places.push_back({.local_rank = counts[key]++, .local_size = 1});
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    places[rank].local_size = counts[host_keys[rank]];
  return places;
}

// -- Rank 0's side ------------------------------------------------------------------------------

Result<LocalPosition> collect_places(RequestCollector& collector, kv::Client& client, int size,
                                     const std::string& host_key, const Deadline& deadline) {
  std::vector<std::string> keys(static_cast<std::size_t>(size));
  std::vector<RequestCollector::Request> latest(keys.size());
  std::vector<RequestCollector::Request> all;
  std::vector<bool> have(keys.size());
  keys[0] = host_key;
  have[0] = true;
  HORO_TRY_STATUS(collector.open(client, deadline));
  for (auto missing = keys.size() - 1; missing > 0;) {
    auto request = collector.next(client, deadline);
    if (!request) return give_up(collector, client, all, std::move(request).error(), have);
    HORO_TRY(auto place, decode_place_request(request->text));
    const auto rank = static_cast<std::size_t>(place.rank);
    if (rank == 0 || rank >= keys.size()) {
      collector.refuse(client, {*request},
                       {Errc::mismatch,
                        fmt::format("rank {} does not belong to a job of {} ranks", rank, size)});
      continue;
    }
    if (!have[rank]) --missing;
    have[rank] = true;
    keys[rank] = std::move(place.host_key);
    latest[rank] = *request;  // A rank that has given up and tries again has a newer one.
    all.push_back(std::move(*request));
  }
  const auto places = place_on_hosts(keys);
  collector.close(client);
  for (std::size_t rank = 1; rank < keys.size(); ++rank)
    HORO_TRY_STATUS(collector.reply(client, latest[rank], encode(places[rank]), deadline));
  return places[0];
}

Result<HostTable> collect_hosts(RequestCollector& collector, kv::Client& client, int size,
                                HostReport own, std::uint64_t epoch, const WaitLimit& limit) {
  HostReports reports(std::move(own), size);
  std::vector<RequestCollector::Request> all;
  HORO_TRY_STATUS(collector.open(client, limit.deadline));
  while (!reports.complete()) {
    auto request = collector.next(client, limit);
    if (!request)
      return give_up(collector, client, all, std::move(request).error(), reports.covered());
    HORO_TRY(auto report, decode_host_report(request->text));
    all.push_back(*request);
    reports.add(std::move(report), std::move(*request));
  }
  collector.close(client);
  auto table = reports.table(epoch);
  const auto bytes = encode(table);
  if (const auto sound = decode_table(bytes, size); !sound) {
    const Error error{Errc::mismatch,
                      "the hosts of the job claim ranks twice; are two jobs at one store?"};
    collector.refuse(client, all, error);
    return Failure(error);
  }
  // The table of the epoch before has been read by all: they have sent new requests.
  HORO_TRY_STATUS(client.erase(std::array{table_key(epoch - 1)}, limit.deadline));
  HORO_TRY_STATUS(client.set(table_key(epoch), bytes, limit.deadline));
  HORO_TRY_STATUS(
      reports.reply(collector, client, encode_fields(TablePlace{.epoch = epoch}), limit.deadline));
  return table;
}

Result<HostTable> ask_for_hosts(kv::Client& client, std::string_view topic, int size,
                                const HostReport& own, const WaitLimit& limit) {
  HORO_TRY(const auto reply, send_request(client, topic, encode(own), limit));
  HORO_TRY(const auto place, decode_fields<TablePlace>(as_bytes(reply), "rank 0's reply"));
  // The table is there, but all hosts read it at once.
  const auto patience = Deadline::in(SteadyClock::instance(), kReadTime);
  HORO_TRY(const auto bytes, client.get(table_key(place.epoch), {patience, limit.cancel}));
  return decode_table(bytes, size);
}

}  // namespace horo::runtime::bootstrap
