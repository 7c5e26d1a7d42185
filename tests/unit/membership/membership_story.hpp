// SPDX-License-Identifier: Apache-2.0
// An elastic job told event by event. Each event returns the machine's orders as one short text:
// "over 1; formed 2: 0 2 (2 survivors)".
#pragma once

#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/ranges.h>

#include "launcher/elastic/membership.hpp"

namespace horo::test {

using namespace horo::launcher;

/// "a:2,b:2" as hosts with slots.
inline discovery::HostSet hosts_of(const std::string& text) {
  discovery::HostSet hosts;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto colon = text.find(':', at);
    hosts.add({.name = text.substr(at, colon - at),
               .slots = std::stoi(text.substr(colon + 1, end - colon - 1))});
    at = end + 1;
  }
  return hosts;
}

/// The orders without those that concern only people and timers.
inline std::string in_short(const MembershipState& state) {
  const auto& orders = state.orders;
  std::vector<std::string> parts;
  if (orders.over) parts.push_back(fmt::format("over {}", *orders.over));
  for (const auto& end : orders.end) parts.push_back(fmt::format("end {}", end.worker));
  if (orders.formed) {
    std::vector<int> workers;
    for (const auto& member : orders.formed->members) workers.push_back(member.worker);
    parts.push_back(fmt::format("formed {}: {} ({} survivors)", orders.formed->generation,
                                fmt::join(workers, " "), orders.formed->survivors));
  }
  for (const auto& call : orders.removed) parts.push_back(fmt::format("removed {}", call.worker));
  for (const auto& call : orders.refused) parts.push_back(fmt::format("refused {}", call.worker));
  if (orders.notice) {
    const std::vector<const char*> names{"", "removed", "added", "mixed"};
    parts.push_back(
        fmt::format("notice {} {}", orders.notice->sequence, names[orders.notice->flags]));
  }
  for (const auto& start : orders.start) {
    parts.push_back(
        fmt::format("start {} {}.{}", start.worker, state.hosts.at(start.host).name, start.slot));
  }
  for (const auto host : orders.close)
    parts.push_back(fmt::format("close {}", state.hosts.at(host).name));
  if (orders.pass_signal) parts.push_back(fmt::format("signal {}", *orders.pass_signal));
  if (orders.stop) parts.push_back("stop");
  if (orders.kill) parts.push_back("kill");
  if (orders.finish) parts.push_back(fmt::format("finish {}", orders.finish->exit_code));
  return fmt::format("{}", fmt::join(parts, "; "));
}

class Story {
 public:
  explicit Story(const ElasticRules& rules, const std::string& hosts = "")
      : state_(begin_membership(rules, now_)) {
    if (!hosts.empty()) first_ = offer(hosts);
  }

  std::string apply(const MembershipEvent& event) {
    state_ = next(std::move(state_), event, now_);
    for (const auto& line : state_.orders.changes) lines_.push_back(line);
    if (state_.orders.formed) formed_ = *state_.orders.formed;
    if (state_.orders.finish) end_ = *state_.orders.finish;
    auto text = in_short(state_);
    const auto started = state_.orders.start;  // The next event replaces the orders.
    for (const auto& start : started) {
      attempts_.resize(static_cast<std::size_t>(start.worker) + 1, 0);
      state_ = next(std::move(state_), WorkerStarted{start.worker}, now_);
    }
    return text;
  }

  std::string offer(const std::string& hosts) { return apply(HostsOffered{hosts_of(hosts)}); }

  /// The worker calls; a member says that it entered the current generation.
  std::string call(int worker) {
    const auto* found = find(worker);
    const bool member = found != nullptr && found->was_member;
    return call_from(worker, member ? state_.generation : 0);
  }

  std::string call_from(int worker, std::uint64_t generation) {
    const auto attempt = ++attempts_[static_cast<std::size_t>(worker)];
    return apply(WorkerCalled{worker, attempt, generation});
  }

  /// All these workers call; returns the last orders.
  std::string call_all(const std::vector<int>& workers) {
    std::string last;
    for (const int worker : workers) last = call(worker);
    return last;
  }

  std::string exits(int worker, int code = 0) {
    return apply(WorkerEnded{{.rank = Rank{worker}, .wait_status = code << 8}});
  }

  /// As by _exit(0) in the middle of a training.
  std::string exits_as_a_member(int worker) {
    return apply(WorkerEnded{
        {.rank = Rank{worker}, .wait_status = 0, .attached = true, .undetached = true}});
  }

  std::string killed(int worker, int signal = 9) {
    return apply(WorkerEnded{{.rank = Rank{worker}, .wait_status = signal}});
  }

  std::string lose_agent(const std::string& host, const std::string& why = "no heartbeat") {
    return apply(AgentLost{index(host), {Errc::unavailable, why}});
  }

  std::string closed(const std::string& host) { return apply(AgentClosed{index(host)}); }

  std::string leaves(const std::string& host, int signal, Duration within) {
    return apply(HostLeaving{index(host), signal, within});
  }

  /// Time passes, with a tick whenever the machine asked for one.
  std::string pass(Duration time) {
    const auto until = now_ + time;
    std::vector<std::string> parts;
    for (int ticks = 0; state_.orders.wake_at && *state_.orders.wake_at <= until; ++ticks) {
      if (ticks > 1000) return "endless ticks";
      now_ = std::max(now_, *state_.orders.wake_at);
      if (auto text = apply(Ticked{}); !text.empty()) parts.push_back(std::move(text));
    }
    now_ = until;
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  const ElasticWorker* find(int worker) const {
    for (const auto& other : state_.workers.all()) {
      if (other.number == worker) return &other;
    }
    return nullptr;
  }

  std::size_t index(const std::string& host) const { return state_.hosts.find(host).value(); }

  const MembershipState& state() const { return state_; }

  const std::string& first() const { return first_; }  ///< Orders of the first offer.

  const FormedGeneration& formed() const { return formed_; }  ///< The last one.

  const JobEnd& end() const { return end_; }

  const std::vector<std::string>& lines() const { return lines_; }

  std::string waiting() const { return waiting_for(state_, now_); }

 private:
  TimePoint now_{std::chrono::seconds(1000)};
  MembershipState state_;
  std::vector<std::uint32_t> attempts_;
  std::vector<std::string> lines_;
  FormedGeneration formed_;
  JobEnd end_;
  std::string first_;
};

/// A story whose workers have all called: the first generation runs.
inline Story running(const ElasticRules& rules, const std::string& hosts) {
  Story story(rules, hosts);
  const auto started = static_cast<int>(story.state().workers.all().size());
  for (int worker = 0; worker < started; ++worker) story.call(worker);
  REQUIRE(story.state().generation == 1);
  return story;
}

}  // namespace horo::test
