// SPDX-License-Identifier: Apache-2.0
#include "discovery/host.hpp"

#include <algorithm>

namespace horo::discovery {

HostSet::HostSet(const std::vector<Host>& hosts) {
  for (const auto& host : hosts) add(host);
}

void HostSet::add(const Host& host) {
  const auto [place, is_new] = places_.try_emplace(host.name, hosts_.size());
  if (is_new) {
    hosts_.push_back(host);
    return;
  }
  auto& same = hosts_[place->second];
  same.slots = std::min(same.slots + host.slots, kMaxSlots);
  same.gpus = std::max(same.gpus, host.gpus);
  same.entries += host.entries;
  if (same.user.empty()) same.user = host.user;
}

const Host* HostSet::find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &hosts_[place->second];
}

long long HostSet::slots() const {
  long long sum = 0;
  for (const auto& host : hosts_) sum += host.slots;
  return sum;
}

std::string describe(const HostSet& hosts) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kShown); ++i) {
    const auto& host = hosts.hosts()[i];
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", host.name, host.slots);
  }
  if (hosts.size() > kShown) text += fmt::format(" and {} more hosts", hosts.size() - kShown);
  return text;
}

}  // namespace horo::discovery
