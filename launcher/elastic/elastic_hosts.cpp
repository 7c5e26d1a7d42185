// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/elastic_hosts.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/board_header.hpp"
#include "launcher/elastic/earliest.hpp"

namespace horo::launcher {

namespace {

/// From 0 up to 1; changes the generator's state. splitmix64.
double draw(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53;
}

/// The first cooldown is 2 to 3 times as long as the range's beginning, each further one about
/// twice as long as the one before, and none longer than the range's end.
Duration cooldown_of(const CooldownRange& range, int times, double random) {
  const double factor = static_cast<double>(1ULL << std::min(times, 40)) + random;
  const double wanted = static_cast<double>(range.least.count()) * factor;
  if (wanted >= static_cast<double>(range.most.count())) return range.most;
  return Duration(static_cast<Duration::rep>(wanted));
}

void make_usable(ElasticHost& host) {
  host.use = HostUse::usable;
  host.why.clear();
  host.signal = 0;
  host.back_at.reset();
  host.leave_by.reset();
  host.failures.assign(host.failures.size(), 0);
}

std::string slots(int count) {
  return fmt::format("{} slot{}", count, count == 1 ? "" : "s");
}

}  // namespace

ElasticHosts::ElasticHosts(const ElasticRules& rules)
    : cooldown_(rules.cooldown), slot_restarts_(rules.slot_restarts), random_(rules.seed) {}

std::vector<std::string> ElasticHosts::offer(const discovery::HostSet& offered) {
  std::vector<std::string> lines;
  std::vector<int> before;
  for (const auto& host : hosts_) before.push_back(host.slots);
  for (auto& host : hosts_) host.slots = 0;
  offered_.clear();
  for (const auto& host : offered.hosts()) take(host);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    auto& host = hosts_[i];
    // A host that got a signal was told to go once. The next time it is offered, it is a new host.
    // One that the user does not want stays out until the user wants it again.
    if (host.slots == 0 && host.use == HostUse::leaving && host.signal != 0) make_usable(host);
    const int old = i < before.size() ? before[i] : 0;
    if (old == host.slots) continue;
    if (host.slots == 0) {
      lines.push_back(fmt::format("host {} is no longer offered", host.name));
    } else if (old == 0) {
      lines.push_back(fmt::format("host {} is offered with {}", host.name, slots(host.slots)));
    } else {
      lines.push_back(
          fmt::format("host {} offers {} instead of {}", host.name, slots(host.slots), old));
    }
  }
  offered_yet_ = true;
  update_ages();
  return lines;
}

void ElasticHosts::take(const discovery::Host& host) {
  const auto [place, added] = indices_.try_emplace(host.name, hosts_.size());
  if (added) hosts_.push_back({.name = host.name});
  auto& own = hosts_[place->second];
  own.user = host.user;
  own.slots = std::clamp(host.slots, 0, kMaxLocalRanks);
  own.most_slots = std::max(own.most_slots, own.slots);
  own.failures.resize(std::max(own.failures.size(), static_cast<std::size_t>(own.slots)), 0);
  offered_.push_back(place->second);
}

void ElasticHosts::update_ages() {
  std::unordered_set<std::size_t> known;
  std::erase_if(by_age_, [this](std::size_t host) { return hosts_[host].room() == 0; });
  known.insert(by_age_.begin(), by_age_.end());
  for (const auto host : offered_) {
    if (hosts_[host].room() > 0 && known.insert(host).second) by_age_.push_back(host);
  }
}

bool ElasticHosts::count_failure(std::size_t host, int slot) {
  auto& failures = hosts_[host].failures;
  const auto index = static_cast<std::size_t>(slot);
  if (index >= failures.size()) failures.resize(index + 1, 0);
  return ++failures[index] > slot_restarts_;
}

void ElasticHosts::put_aside(std::size_t index, std::string why, TimePoint now) {
  auto& host = hosts_[index];
  if (host.use != HostUse::usable) return;
  host.use = HostUse::put_aside;
  host.why = std::move(why);
  ++host.times_aside;
  if (cooldown_) host.back_at = now + cooldown_of(*cooldown_, host.times_aside, draw(random_));
  update_ages();
}

void ElasticHosts::leave(std::size_t index, int signal, std::string why, TimePoint by) {
  auto& host = hosts_[index];
  host.use = HostUse::leaving;
  if (signal != 0) host.signal = signal;
  host.why = std::move(why);
  host.leave_by = earliest(host.leave_by, by);
  host.back_at.reset();
  update_ages();
}

void ElasticHosts::give_back(std::size_t index) {
  make_usable(hosts_[index]);
  update_ages();
}

std::vector<std::size_t> ElasticHosts::give_back_due(TimePoint now) {
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].back_at && *hosts_[i].back_at <= now) due.push_back(i);
  }
  for (const auto host : due) give_back(host);
  return due;
}

std::optional<std::size_t> ElasticHosts::find(std::string_view name) const {
  const auto found = indices_.find(std::string(name));
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

int ElasticHosts::room() const {
  long long room = 0;
  for (const auto host : by_age_) room += hosts_[host].room();
  return static_cast<int>(std::min<long long>(room, kMaxRanks));
}

void ElasticHosts::delay(Duration by) {
  for (auto& host : hosts_) {
    if (host.back_at) *host.back_at += by;
    if (host.leave_by) *host.leave_by += by;
  }
}

std::optional<TimePoint> ElasticHosts::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& host : hosts_) next = earliest(next, host.back_at);
  return next;
}

}  // namespace horo::launcher
