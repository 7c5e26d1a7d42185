// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/host_wishes.hpp"

#include <algorithm>

namespace horo::launcher {

void HostWishes::limit(const std::string& host, int slots) {
  const auto before = wishes_.find(host);
  const bool added = before != wishes_.end() && before->second.added;
  // The slots of an added host are known from the user only.
  wishes_[host] = {.slots = slots, .exact = added, .added = added};
}

void HostWishes::set(const std::string& host, int slots) {
  const auto before = wishes_.find(host);
  const bool added = offered_slots(host) == 0 || (before != wishes_.end() && before->second.added);
  wishes_[host] = {.slots = slots, .exact = true, .added = added};
}

int HostWishes::offered_slots(const std::string& host) const {
  const auto* offered = offered_.find(host);
  return offered == nullptr ? 0 : offered->slots;
}

discovery::HostSet HostWishes::hosts() const {
  discovery::HostSet hosts;
  for (auto host : offered_.hosts()) {
    if (const auto wish = wishes_.find(host.name); wish != wishes_.end()) {
      host.slots =
          wish->second.exact ? wish->second.slots : std::min(wish->second.slots, host.slots);
    }
    hosts.add(host);
  }
  for (const auto& [name, wish] : wishes_) {
    if (wish.added && offered_.find(name) == nullptr)
      hosts.add({.name = name, .slots = wish.slots});
  }
  return hosts;
}

}  // namespace horo::launcher
