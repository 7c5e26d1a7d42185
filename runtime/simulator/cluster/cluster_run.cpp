// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/cluster_run.hpp"

#include <algorithm>
#include <array>

#include "base/tree/run_tree.hpp"
#include "runtime/backends/tcp/tcp_contacts.hpp"

namespace horo::runtime::sim {

namespace {
constexpr auto kHosts = "horo/hosts";
constexpr std::size_t kReplyBytes = 16;  // Code, length and the number of the epoch.
}  // namespace

ClusterRun::ClusterRun(const Cluster& cluster)
    : cluster_(cluster),
      world_(std::make_unique<World>(params_of(cluster))),
      network_(world_->network()),
      store_(network_, 0) {
  network_.use(links_of(cluster));
  owners_ = world_->size();
  for (const auto& host : world_->params().hosts) {
    HostState state;
    for (const auto rank : host.ranks) {
      state.ranks.push_back(rank.value());
      members_.push_back(rank.value());
      host_of_.push_back(static_cast<int>(hosts_.size()));
    }
    owners_ = std::min(owners_, static_cast<int>(state.ranks.size()));
    most_local_ = std::max(most_local_, static_cast<int>(state.ranks.size()));
    hosts_.push_back(std::move(state));
  }
  all_ = std::make_unique<SimWire>(network_, host_of_);
  for (int l = 0; l < owners_; ++l) {
    std::vector<int> one_each(hosts_.size());
    for (std::size_t h = 0; h < one_each.size(); ++h) one_each[h] = static_cast<int>(h);
    across_.push_back(std::make_unique<SimWire>(network_, std::move(one_each)));
  }
}

ClusterRun::~ClusterRun() = default;

// -- Fibers -------------------------------------------------------------------------------------

void ClusterRun::spawn(std::function<void()> body) {
  ++running_;
  fibers_.push_back(std::make_unique<Fiber>([this, body = std::move(body)] {
    body();
    --running_;
  }));
  network_.at(network_.now(), [fiber = fibers_.back().get()] { fiber->resume(); });
}

Duration ClusterRun::finish() {
  const auto begin = network_.now();
  // Virtual time costs nothing; the file of a cluster allows links on which a sum takes hours.
  world_->run(std::chrono::hours(1000), [this] { return running_ == 0; });
  HORO_CHECK(running_ == 0);
  fibers_.clear();
  return network_.now() - begin;
}

void ClusterRun::sleep(Duration time) {
  if (time <= Duration::zero()) return;
  network_.after(time, [fiber = Fiber::current()] { fiber->resume(); });
  Fiber::pause();
}

// -- Start --------------------------------------------------------------------------------------

StartReport ClusterRun::start() {
  StartReport report;
  for (const int rank : members_) spawn([this, rank, &report] { start_rank(rank, report); });
  report.connected = finish();
  report.store = store_.counters();
  report.keys_left = store_.table().keys();
  return report;
}

void ClusterRun::connect_set(std::uint64_t number) {
  StartReport ignored;
  for (const int rank : members_)
    spawn([this, rank, number, &ignored] { connect_rank(rank, number, ignored); });
  finish();
}

void ClusterRun::start_rank(int rank, StartReport& report) {
  const int host = host_of_[static_cast<std::size_t>(rank)];
  auto& here = hosts_[static_cast<std::size_t>(host)];
  const auto now = [this] { return network_.now().time_since_epoch(); };
  if (here.ranks.front() == rank) {
    meet_hosts(host);
    report.hosts_known = std::max<Duration>(report.hosts_known, now());
    here.ready = true;
    for (auto* const local : here.local)
      network_.after(cluster_.inside.latency, [local] { local->resume(); });
    connect_leader(host);
    report.leaders = std::max<Duration>(report.leaders, now());
  } else if (!here.ready) {
    here.local.push_back(Fiber::current());
    Fiber::pause();
  }
  connect_rank(rank, 1, report);
}

/// As bootstrap's meet_hosts(): each host's first rank reports its host to that of rank 0, which
/// replies where the table of all is.
void ClusterRun::meet_hosts(int host) {
  using namespace bootstrap;  // NOLINT(google-build-using-namespace): its messages
  store_.connect(host);
  SimStoreClient client(store_, host);
  const auto& params = world_->params().hosts[static_cast<std::size_t>(host)];
  const HostReport own{
      .host = {.name = params.name, .address = address_of(host), .ranks = params.ranks},
      .server_host = address_of(0)};
  const auto never = Deadline::never();
  const auto open = fmt::format("{}/open", kHosts);
  const auto table_key = fmt::format("{}/table/1", kHosts);
  const std::string reply(kReplyBytes, '\0');
  if (host != 0) {
    HORO_CHECK(client.get(open, never));
    const auto number = client.add(fmt::format("{}/count", kHosts), 1, never).value();
    HORO_CHECK(client.set(fmt::format("{}/card/{}", kHosts, number), encode(own), never));
    const auto answer = fmt::format("{}/answer/{}", kHosts, number);
    HORO_CHECK(client.get(answer, never));
    HORO_CHECK(client.erase(std::array{answer}, never));
    HORO_CHECK(decode_table(client.get(table_key, never).value(), world_->size()));
    return;
  }
  std::vector<HostReport> reports{own};
  HORO_CHECK(client.set(open, std::string(sizeof(std::uint64_t), '\0'), never));
  for (std::size_t number = 1; number < hosts_.size(); ++number) {
    const auto card = fmt::format("{}/card/{}", kHosts, number);
    reports.push_back(decode_host_report(client.get(card, never).value()).value());
    HORO_CHECK(client.erase(std::array{card}, never));
  }
  HORO_CHECK(client.erase(std::array{open}, never));
  HORO_CHECK(client.set(table_key, encode(make_table(std::move(reports), 1)), never));
  for (std::size_t number = 1; number < hosts_.size(); ++number)
    HORO_CHECK(client.set(fmt::format("{}/answer/{}", kHosts, number), reply, never));
}

/// As start_leader_service(): finds the parent by the store, connects to it, and waits for the
/// children.
void ClusterRun::connect_leader(int host) {
  const auto key = [](int h) { return fmt::format("horo/tree/1/{}", h); };
  const auto& place = world_->leader(host).place();
  auto& here = hosts_[static_cast<std::size_t>(host)];
  store_.connect(host);
  SimStoreClient client(store_, host);
  const auto never = Deadline::never();
  HORO_CHECK(client.set(key(host), fmt::format("{}:40000", address_of(host)), never));
  if (place.parent >= 0) {
    HORO_CHECK(client.get(key(place.parent), never));
    auto& parent = hosts_[static_cast<std::size_t>(place.parent)];
    const auto hello = world_->leader(host).hello().size() + kv::kLengthBytes + kv::kTagBytes;
    for (const auto bytes : {std::size_t{0}, kv::kHelloBytes, kv::kProofBytes, hello}) {
      network_.carry(
          host, place.parent, bytes, network_.now(), [=, this, fiber = Fiber::current()] {
            network_.carry(place.parent, host, bytes, network_.now(), [fiber] { fiber->resume(); });
          });
      Fiber::pause();
    }
    ++parent.children;
    if (auto* const waiting = std::exchange(parent.leader, nullptr))
      network_.at(network_.now(), [waiting] { waiting->resume(); });
  }
  while (here.children < static_cast<int>(place.children.size())) {
    here.leader = Fiber::current();
    Fiber::pause();
  }
  HORO_CHECK(client.erase(std::array{key(host)}, never));
}

/// As SetConnector::connect() with the module `tcp`.
void ClusterRun::connect_rank(int rank, std::uint64_t number, StartReport& report) {
  const int host = host_of_[static_cast<std::size_t>(rank)];
  store_.connect(host);
  SimStoreClient client(store_, host);
  const auto name = fmt::format("horo/sets/1/{}", number);
  const auto never = Deadline::never();
  if (number == 1) {
    ContactExchange exchange(members_, name, rank, client);
    HORO_CHECK(exchange.gather({{address_of(host), port_of(rank)}}, never));
    HORO_CHECK(exchange.spread(*all_->transport(rank)));
    report.addresses_known =
        std::max<Duration>(report.addresses_known, network_.now().time_since_epoch());
  }
  HORO_CHECK(await_all(client, {.name = name, .ranks = world_->size(), .keys = client.own()}));
}

// -- Failures -----------------------------------------------------------------------------------

LossReport ClusterRun::lose(const HostFailure& failure) {
  world_->run(failure.at, [] { return false; });
  const auto begin = network_.now();
  switch (failure.how) {
    case HostFailure::How::dies:
      world_->kill(failure.host);
      break;
    case HostFailure::How::is_cut:
      world_->cut(failure.host);
      break;
    case HostFailure::How::stops:
      world_->stop(failure.host);
      break;
  }
  int told = 0;
  const auto all_know = [&] {
    for (; told < world_->hosts(); ++told) {
      if (world_->alive(told) && !world_->loss(told)) return false;
    }
    return true;
  };
  HORO_CHECK(world_->run(10 * cluster_.heartbeat_timeout, all_know));
  return {.failure = failure, .known = network_.now() - begin};
}

ClusterReport run_cluster(const Cluster& cluster) {
  ClusterReport report;
  ClusterRun run(cluster);
  report.start = run.start();
  report.first = run_agreement(run.world(), cluster.tensors);
  report.cached = run_agreement(run.world(), cluster.tensors);
  for (const auto bytes : cluster.sums) report.sums.push_back(run.sum(bytes));
  report.connections = run.connections();
  report.most_connections = run.most_connections();
  auto failures = cluster.failures;
  std::stable_sort(failures.begin(), failures.end(),
                   [](const HostFailure& a, const HostFailure& b) { return a.at < b.at; });
  // The first loss ends a job.
  if (!failures.empty()) report.losses.push_back(run.lose(failures.front()));
  return report;
}

}  // namespace horo::runtime::sim
