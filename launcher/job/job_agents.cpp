// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_agents.hpp"

#include <algorithm>
#include <utility>

namespace horo::launcher {

void JobAgents::begin(std::size_t hosts, const SameAs& same_as,
                      const std::shared_ptr<Starter>& starter) {
  std::erase_if(leaving_, [](const auto& link) { return link->is_gone(); });
  auto kept = std::exchange(kept_, {});
  for (std::size_t host = 0; host < hosts; ++host) {
    const auto before = host < same_as.size() ? same_as[host] : std::nullopt;
    std::unique_ptr<HostLink> link;
    if (before && *before < kept.size()) link = std::move(kept[*before]);
    if (link == nullptr) link = std::make_unique<HostLink>(loop_, starter, hooks_);
    hosts_.push_back(std::move(link));
  }
  for (auto& link : kept) {
    if (link == nullptr) continue;
    link->release();
    leaving_.push_back(std::move(link));
  }
}

void JobAgents::end() {
  kept_ = std::exchange(hosts_, {});
  for (auto& link : kept_) {
    if (!link->waits()) link.reset();
  }
}

void JobAgents::release() {
  for (auto* links : {&hosts_, &kept_}) {
    for (auto& link : *links) {
      if (link != nullptr) link->release();
    }
  }
}

void JobAgents::clear() {
  for (auto* links : {&hosts_, &kept_, &leaving_}) links->clear();
}

void JobAgents::for_each(const std::function<void(Agent&)>& task) {
  for (auto* links : {&hosts_, &kept_}) {
    for (auto& link : *links) {
      if (link != nullptr && link->agent() != nullptr) task(*link->agent());
    }
  }
}

std::vector<std::size_t> JobAgents::late_hosts() const {
  std::vector<std::size_t> late;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host]->step().empty()) late.push_back(host);
  }
  return late;
}

std::string JobAgents::list_steps() const {
  constexpr std::size_t kMost = 5;
  const auto late = late_hosts();
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, late.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : "; ", hosts_[late[i]]->step());
  }
  if (late.size() > kMost) text += fmt::format("; and {} more", late.size() - kMost);
  return text;
}

bool JobAgents::any_left() const {
  const auto is_there = [](const auto& link) { return link != nullptr && !link->is_gone(); };
  return std::ranges::any_of(hosts_, is_there) || std::ranges::any_of(kept_, is_there) ||
         std::ranges::any_of(leaving_, is_there);
}

std::size_t JobAgents::reused() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(hosts_, [](const auto& link) { return link->is_reused(); }));
}

}  // namespace horo::launcher
