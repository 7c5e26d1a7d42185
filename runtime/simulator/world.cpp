// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/world.hpp"

#include "runtime/simulator/sim_host.hpp"

namespace horo::runtime::sim {

std::vector<tree::HostRanks> even_hosts(int count, int ranks) {
  std::vector<tree::HostRanks> hosts;
  for (int h = 0; h < count; ++h) {
    tree::HostRanks host{.name = fmt::format("node{}", h), .ranks = {}};
    for (int r = 0; r < ranks; ++r) host.ranks.emplace_back(h * ranks + r);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

World::World(WorldParams params)
    : params_(std::move(params)), network_(params_.links, params_.seed) {
  HORO_CHECK(tree::validate(params_.hosts, params_.radix).has_value());
  int size = 0;
  for (const auto& host : params_.hosts) size += static_cast<int>(host.ranks.size());
  host_of_.resize(static_cast<std::size_t>(size));
  for (int h = 0; h < hosts(); ++h) {
    for (const auto rank : params_.hosts[static_cast<std::size_t>(h)].ranks)
      host_of_[rank.index()] = h;
    hosts_.push_back(std::make_unique<SimHost>(*this, h));
  }
  for (auto& host : hosts_) {
    for (const auto& child : host->leader().place().children) {
      auto& below = *hosts_[static_cast<std::size_t>(child.first)];
      HORO_CHECK(host->leader().greet(as_bytes(below.leader().hello()), network_.now()));
      HORO_CHECK(below.leader().greet(as_bytes(host->leader().hello()), network_.now()));
    }
  }
  add_set(SetId{0}, tree::RankRanges::of(0, size));
}

World::~World() = default;

void World::add_set(SetId set, const tree::RankRanges& members, Duration spread) {
  for (auto& host : hosts_) {
    if (spread == Duration::zero()) {
      host->add_set(set, members);
      continue;
    }
    const auto most = static_cast<std::uint64_t>(spread.count());
    network_.after(Duration(static_cast<Duration::rep>(network_.random()() % most)),
                   [host = host.get(), set, members] { host->add_set(set, members); });
  }
}

bool World::submit(Rank rank, const std::string& name, const Signature& signature, SetId set) {
  auto& host = *hosts_[static_cast<std::size_t>(host_of(rank))];
  auto& log = *host.log(set);
  if (!log.submit(rank, name, signature)) return false;
  if (log.has_news()) host.news();
  return true;
}

void World::join(Rank rank, SetId set) {
  auto& host = *hosts_[static_cast<std::size_t>(host_of(rank))];
  host.log(set)->join(rank);
  host.news();
}

void World::leave(Rank rank, SetId set) {
  auto& host = *hosts_[static_cast<std::size_t>(host_of(rank))];
  host.log(set)->leave(rank);
  host.news();
}

void World::kill(int number) {
  auto& host = *hosts_[static_cast<std::size_t>(number)];
  host.set_health(SimHost::Health::dead);
  const auto links = host.leader().place().children.size() + 1;
  for (std::size_t i = 0; i < links; ++i) {
    const int other = host.neighbour(i);
    if (other < 0) continue;
    network_.carry(number, other, 0, network_.now(), [this, number, other] {
      hosts_[static_cast<std::size_t>(other)]->hang_up(number);
    });
  }
}

void World::cut(int host) {
  hosts_[static_cast<std::size_t>(host)]->set_health(SimHost::Health::cut);
}

void World::stop(int host) {
  hosts_[static_cast<std::size_t>(host)]->set_health(SimHost::Health::stopped);
}

void World::poison(int host, const tree::Loss& loss) {
  hosts_[static_cast<std::size_t>(host)]->lose(loss);
  hosts_[static_cast<std::size_t>(host)]->news();
}

void World::inject(int to, int from, std::string payload) {
  network_.carry(from, to, payload.size(), network_.now(),
                 [this, from, to, payload = std::move(payload)]() mutable {
                   hosts_[static_cast<std::size_t>(to)]->receive(from, std::move(payload));
                 });
}

bool World::alive(int host) const {
  return hosts_[static_cast<std::size_t>(host)]->health() == SimHost::Health::well;
}

SimLog& World::log(int host, SetId set) {
  return *hosts_[static_cast<std::size_t>(host)]->log(set);
}

bool World::has_log(int host, SetId set) const {
  return hosts_[static_cast<std::size_t>(host)]->log(set) != nullptr;
}

tree::Leader& World::leader(int host) {
  return hosts_[static_cast<std::size_t>(host)]->leader();
}

const std::optional<tree::Loss>& World::loss(int host) const {
  return hosts_[static_cast<std::size_t>(host)]->lost();
}

bool World::run(Duration limit, const std::function<bool()>& done) {
  network_.run_until(network_.now() + limit, done);
  return done();
}

}  // namespace horo::runtime::sim
