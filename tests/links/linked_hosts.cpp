// SPDX-License-Identifier: Apache-2.0
#include "tests/links/linked_hosts.hpp"

#include <array>
#include <chrono>
#include <future>

namespace horo::links {

using namespace runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

void TestHost::submit(Rank rank, const std::string& name, const runtime::Signature& signature) {
  const std::lock_guard lock(mutex_);
  HORO_CHECK(log_.submit(rank, name, signature));
}

void TestHost::join(Rank rank) {
  const std::lock_guard lock(mutex_);
  log_.join(rank);
}

void TestHost::leave(Rank rank) {
  const std::lock_guard lock(mutex_);
  log_.leave(rank);
}

bool TestHost::wait(const std::function<bool(TestHost&)>& done) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return done(*this); });
}

void TestHost::take_completed(std::vector<Completed>& out) {
  const std::lock_guard lock(mutex_);
  log_.take_completed(out);
}

LastSubmission TestHost::last_submission(TensorId id) {
  const std::lock_guard lock(mutex_);
  return log_.last_submission(id);
}

void TestHost::show_arrivals(TensorId id, std::span<const LastSubmission> others) {
  const std::lock_guard lock(mutex_);
  log_.show_arrivals(id, others);
}

Declaration TestHost::describe(TensorId id) {
  const std::lock_guard lock(mutex_);
  return log_.describe(id);
}

Result<std::optional<TensorId>> TestHost::define(std::string_view name,
                                                 const runtime::Signature& signature) {
  const std::lock_guard lock(mutex_);
  return log_.define(name, signature);
}

RankRanges TestHost::take_joined() {
  const std::lock_guard lock(mutex_);
  return log_.take_joined();
}

Result<bool> TestHost::publish(const HostEntry& entry) {
  const std::lock_guard lock(mutex_);
  HORO_TRY(const bool taken, log_.publish(entry));
  log_.finish_next();
  changed_.notify_all();
  return taken;
}

std::uint64_t TestHost::done() const {
  const std::lock_guard lock(mutex_);
  return log_.done();
}

std::optional<Loss> TestHost::loss() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void TestHost::lose(const Loss& loss) {
  const std::lock_guard lock(mutex_);
  if (!lost_) lost_ = loss;
  changed_.notify_all();
}

RankRanges TestHost::take_leaving() {
  const std::lock_guard lock(mutex_);
  return log_.take_leaving();
}

Cluster::Cluster(int count, int ranks, int tree_radix)
    : radix(tree_radix), hosts(runtime::sim::even_hosts(count, ranks)) {
  for (int h = 0; h < count; ++h) {
    auto listener = LeaderListener::open("127.0.0.1");
    HORO_CHECK(listener.has_value());
    listeners.push_back(std::move(*listener));
  }
  for (int h = 0; h < count; ++h) {
    const auto parent = place_of(h, count, radix).parent;
    parent_ports.push_back(parent < 0 ? std::uint16_t{0}
                                      : listeners[static_cast<std::size_t>(parent)].port);
  }
}

LeaderServiceParams Cluster::params(int host) const {
  return {.leader = {.host = host, .radix = radix, .heartbeat_timeout = heartbeat_timeout},
          .hosts = hosts,
          .parent = {.host = "127.0.0.1", .port = parent_ports[static_cast<std::size_t>(host)]},
          .secret = {1, 2, 3}};
}

Result<std::unique_ptr<LeaderService>> Cluster::start(int host, const LeaderServiceParams& params,
                                                      TestHost& state, Duration limit) {
  HORO_TRY(auto node, LeaderService::start(
                          params, std::move(listeners[static_cast<std::size_t>(host)]), state,
                          Deadline::in(SteadyClock::instance(), limit), [] { return false; }));
  const auto ranks = hosts.size() * hosts[0].ranks.size();
  node->add_set(SetId{0}, RankRanges::of(0, static_cast<int>(ranks)), &state);
  return node;
}

Hosts::Hosts(Cluster& cluster) : ranks_per_host(static_cast<int>(cluster.hosts[0].ranks.size())) {
  std::vector<std::future<Result<std::unique_ptr<LeaderService>>>> starting;
  const auto count = static_cast<int>(cluster.hosts.size());
  for (int h = 0; h < count; ++h) {
    states.push_back(std::make_unique<TestHost>(cluster.hosts[static_cast<std::size_t>(h)].ranks));
    starting.push_back(std::async(std::launch::async, [&cluster, h, state = states.back().get()] {
      return cluster.start(h, cluster.params(h), *state);
    }));
  }
  for (auto& start : starting) {
    auto node = start.get();
    HORO_CHECK(node.has_value());
    nodes.push_back(std::move(*node));
  }
}

void Hosts::submit(Rank rank, const std::string& name, const runtime::Signature& signature) {
  const auto host = rank.value() / ranks_per_host;
  (*this)[host].submit(rank, name, signature);
  node(host).poke();
}

bool Hosts::wait(std::size_t entries) {
  for (auto& state : states) {
    if (!state->wait([entries](TestHost& host) { return host.records().size() >= entries; }))
      return false;
  }
  return true;
}

runtime::Signature vector_of(std::int64_t count, runtime::DType dtype) {
  runtime::Signature signature{.dtype = dtype};
  const std::array shape{count};
  HORO_CHECK(runtime::set_shape(signature, shape).has_value());
  return signature;
}

}  // namespace horo::links
