// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/sim_host.hpp"

#include <algorithm>

namespace horo::runtime::sim {

namespace {

tree::LeaderParams leader_params(const WorldParams& params, int number) {
  return {.host = number,
          .radix = params.radix,
          .epoch = params.epoch,
          .heartbeat_timeout = params.heartbeat_timeout,
          .rules = params.rules};
}

}  // namespace

SimHost::SimHost(World& world, int number)
    : world_(world),
      number_(number),
      leader_(leader_params(world.params(), number), world.params().hosts, *this, *this) {}

int SimHost::neighbour(std::size_t link) const {
  const auto& place = leader_.place();
  return link == tree::Leader::kParent ? place.parent : place.children[link - 1].first;
}

std::size_t SimHost::link_of(int neighbour) const {
  const auto& place = leader_.place();
  if (neighbour == place.parent) return tree::Leader::kParent;
  const auto child = std::find_if(place.children.begin(), place.children.end(),
                                  [neighbour](const Branch& c) { return c.first == neighbour; });
  return static_cast<std::size_t>(child - place.children.begin()) + 1;
}

void SimHost::add_set(SetId set, const tree::RankRanges& members) {
  std::vector<Rank> own;
  for (const auto rank : world_.params().hosts[static_cast<std::size_t>(number_)].ranks) {
    if (members.contains(rank)) own.push_back(rank);
  }
  SimLog* log = nullptr;
  if (!own.empty()) {
    auto& slot = logs_[set];
    slot = std::make_unique<SimLog>(std::move(own), world_.signatures_, world_.params().room);
    log = slot.get();
    log->on_publish([this, set](std::uint64_t entry) {
      if (world_.on_publish_) world_.on_publish_(number_, set, entry);
      if (running_[set]++ == 0) run_later(set);
    });
    log->on_finish([this, set](std::uint64_t entry) { has_run(set, entry); });
  }
  leader_.add_set(set, members, log, world_.network_.now());
  news();
}

void SimHost::run_later(SetId set) {
  if (world_.params().caller_runs) return;
  world_.network_.after(world_.params().run_time, [this, set] {
    if (works()) logs_.at(set)->finish_next();
  });
}

void SimHost::has_run(SetId set, std::uint64_t entry) {
  if (--running_[set] > 0) run_later(set);
  if (world_.on_run_) world_.on_run_(number_, set, entry);
  news();
}

void SimHost::send(std::size_t link, std::string payload) {
  const int to = neighbour(link);
  auto& network = world_.network_;
  busy_ = std::max(busy_, network.now()) + network.model().send_cost;
  if (world_.on_crossing_) world_.on_crossing_({.from = number_, .to = to, .payload = payload});
  if (health_ == Health::cut) return;
  const auto size = payload.size();
  network.carry(number_, to, size, busy_,
                [&world = world_, from = number_, to, payload = std::move(payload)]() mutable {
                  world.hosts_[static_cast<std::size_t>(to)]->receive(from, std::move(payload));
                });
}

void SimHost::receive(int from, std::string payload) {
  if (health_ == Health::dead || health_ == Health::cut) return;
  inbox_.push_back({.from = from, .payload = std::move(payload)});
  pump();
}

void SimHost::hang_up(int from) {
  if (health_ == Health::dead || health_ == Health::cut) return;
  inbox_.push_back({.from = from, .payload = std::nullopt});
  pump();
}

void SimHost::news() {
  // Several events at one time are handled together.
  if (news_due_) return;
  news_due_ = true;
  auto& network = world_.network_;
  network.at(std::max(network.now(), busy_), [this] {
    news_due_ = false;
    if (!works()) return;
    leader_.on_news(world_.network_.now());
    set_timer();
  });
}

void SimHost::pump() {
  if (pumping_ || inbox_.empty()) return;
  pumping_ = true;
  auto& network = world_.network_;
  busy_ = std::max(busy_, network.now()) + network.model().receive_cost;
  network.at(busy_, [this] {
    pumping_ = false;
    if (!works()) return;
    const auto arrival = std::move(inbox_.front());
    inbox_.pop_front();
    handle(arrival);
    set_timer();
    pump();
  });
}

void SimHost::handle(const Arrival& arrival) {
  const auto now = world_.network_.now();
  const auto link = link_of(arrival.from);
  if (arrival.payload) {
    leader_.on_frame(link, as_bytes(*arrival.payload), now);
  } else {
    leader_.on_closed(link, now);
  }
}

void SimHost::set_timer() {
  const auto due = leader_.next_time();
  if (due == TimePoint::max() || due >= timer_) return;
  timer_ = due;
  world_.network_.at(due, [this, due] {
    if (timer_ != due) return;
    timer_ = TimePoint::max();
    if (!works()) return;
    leader_.on_time(world_.network_.now());
    set_timer();
  });
}

}  // namespace horo::runtime::sim
