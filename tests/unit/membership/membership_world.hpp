// SPDX-License-Identifier: Apache-2.0
// A world around the membership machine: workers that import, meet, train, hang and die, agents and
// hosts that come and go, all by a seed and on a virtual clock.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "tests/unit/membership/membership_checker.hpp"

namespace horo::test {

class MembershipWorld {
 public:
  explicit MembershipWorld(std::uint64_t seed)
      : random_(seed),
        rules_(draw_rules(seed)),
        checker_(rules_),
        state_(begin_membership(rules_, now_)) {}

  /// Trouble for some minutes, then peace until nothing happens any more.
  void run() {
    draw_offer();
    const auto peace = now_ + seconds(20, 200);
    while (now_ < peace && step(std::min(peace, now_ + seconds(0.1, 3)))) trouble();
    peace_ = true;
    for (int i = 0; step(TimePoint::max()); ++i) ensure(i < 50'000, "the job does not settle");
    check_peace();
  }

  const MembershipState& state() const { return state_; }

 private:
  struct Worker {
    std::size_t host = 0;
    bool alive = true;
    bool hung = false;
    bool waits = false;  ///< For the answer to a call.
    std::uint32_t attempt = 0;
    std::uint64_t entered = 0;
    std::uint64_t member_of = 0;
  };

  struct Machine {
    bool agent = false;
    bool stuck = false;  ///< The agent does not react any more.
  };

  int number(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }

  bool chance(int percent) { return number(0, 99) < percent; }

  Duration seconds(double least, double most) {
    const double part = static_cast<double>(random_() % 10'000) / 10'000;
    return Duration(static_cast<Duration::rep>((least + (most - least) * part) * 1e9));
  }

  ElasticRules draw_rules(std::uint64_t seed) {
    ElasticRules rules;
    rules.min_np = number(1, 3);
    rules.max_np = chance(50) ? rules.min_np + number(0, 3) : kMaxRanks;
    rules.np = std::min(rules.max_np, rules.min_np + number(0, 2));
    rules.spares = rules.max_np == kMaxRanks ? 0 : number(0, 2);
    rules.slot_restarts = number(0, 3);
    if (chance(60)) rules.cooldown = CooldownRange{seconds(1, 10), seconds(10, 60)};
    if (chance(25)) rules.reset_limit = number(0, 6);
    rules.elastic_timeout = seconds(10, 60);
    rules.start_timeout = seconds(8, 40);
    rules.rejoin_timeout = seconds(4, 30);
    rules.join_window = seconds(0, 3);
    rules.end_timeout = seconds(20, 60);
    rules.seed = seed;
    return rules;
  }

  void later(Duration delay, std::function<void()> action) {
    agenda_.emplace(now_ + delay, std::move(action));
  }

  /// Time goes on to the next thing that happens, not beyond `until`. False: nothing is left.
  bool step(TimePoint until) {
    const auto wake = state_.orders.wake_at;
    const auto own = agenda_.empty() ? TimePoint::max() : agenda_.begin()->first;
    const auto next_time = std::min(own, wake.value_or(TimePoint::max()));
    if (next_time == TimePoint::max() && until == TimePoint::max()) return false;
    if (next_time > until) {
      now_ = until;
      return true;
    }
    now_ = std::max(now_, next_time);
    if (wake && *wake <= own) {
      apply(Ticked{});
    } else {
      auto action = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      action();
    }
    return true;
  }

  void apply(const MembershipEvent& event) {
    checker_.before(event);
    state_ = next(std::move(state_), event, now_);
    checker_.after(state_, now_);
    carry_out(MembershipOrders(state_.orders));
  }

  void carry_out(const MembershipOrders& orders) {
    if (orders.over) break_generation(*orders.over);
    for (const auto& end : orders.end)
      later(seconds(0.01, 3), [this, worker = end.worker] { die(worker, 15); });
    if (orders.formed) form(*orders.formed);
    for (const auto& call : orders.removed) answer(call.worker, 0);
    for (const auto& call : orders.refused) answer(call.worker, 1);
    if (orders.notice) react_to_notice();
    for (const auto& start : orders.start) begin(start);
    for (const auto host : orders.close) close(host, seconds(0.05, 1));
    if (orders.stop) stop();
    if (orders.kill) {
      for (auto& [host, machine] : machines_) {
        if (machine.agent) machine.stuck = chance(10);
        close(host, seconds(0.01, 0.2));
      }
    }
  }

  void begin(const StartWorker& start) {
    auto& machine = machines_[start.host];
    const bool fresh = !std::exchange(machine.agent, true);
    machine.stuck = false;
    workers_[start.worker] = {.host = start.host};
    if (fresh && chance(peace_ ? 0 : 4)) {
      return later(seconds(0.1, 5), [this, host = start.host] { lose_agent(host); });
    }
    const int worker = start.worker;
    later(seconds(0.05, 0.5), [this, worker] {
      if (!workers_[worker].alive) return;
      if (!peace_ && chance(3)) {
        workers_[worker].alive = false;
        const auto code = chance(30) ? Errc::not_found : Errc::unavailable;
        return apply(WorkerNotStarted{worker, {code, "no"}});
      }
      apply(WorkerStarted{worker});
      workers_[worker].hung = chance(peace_ ? 0 : 3);
      later(seconds(0.2, 4), [this, worker] { call(worker); });
    });
  }

  void call(int number) {
    auto& worker = workers_[number];
    if (!worker.alive || worker.hung || worker.waits) return;
    worker.waits = true;
    worker.member_of = 0;
    ++worker.attempt;
    apply(WorkerCalled{number, worker.attempt, worker.entered});
    if (!peace_ && chance(2) && workers_[number].waits) {
      ++workers_[number].attempt;
      apply(WorkerCalled{number, workers_[number].attempt, workers_[number].entered});
    }
  }

  void form(const FormedGeneration& formed) {
    generation_ = formed.generation;
    broken_ = false;
    for (const auto& member : formed.members) {
      workers_[member.worker].waits = false;
      workers_[member.worker].member_of = formed.generation;
    }
    later(seconds(0.01, 1), [this, generation = formed.generation] {
      if (generation != generation_ || broken_) return;
      for (auto& [number, worker] : workers_) {
        if (worker.member_of == generation) worker.entered = generation;
      }
    });
    for (const auto& member : formed.members) {
      if (!workers_[member.worker].alive) break_generation(formed.generation);
    }
  }

  /// The members see that another one is gone, and call.
  void break_generation(std::uint64_t generation) {
    if (generation != generation_ || std::exchange(broken_, true)) return;
    for (const auto& [number, worker] : workers_) {
      if (worker.member_of == generation)
        later(seconds(0.05, 1.5), [this, number = number, generation] {
          if (workers_[number].member_of == generation) call(number);
        });
    }
  }

  void react_to_notice() {
    const auto step_end = seconds(0.05, 2);
    for (const auto& [number, worker] : workers_) {
      if (worker.member_of == generation_)
        later(step_end + seconds(0, 0.05), [this, number = number, generation = generation_] {
          if (workers_[number].member_of == generation) call(number);
        });
    }
  }

  void answer(int number, int code) {
    auto& worker = workers_[number];
    worker.waits = false;
    worker.member_of = 0;
    if (!peace_ && chance(3)) {
      worker.hung = true;
      return;
    }
    later(seconds(0.01, 0.5), [this, number, code] { die(number, code << 8); });
  }

  void die(int number, int status) {
    auto& worker = workers_[number];
    if (!std::exchange(worker.alive, false)) return;
    apply(WorkerEnded{{.rank = Rank{number}, .wait_status = status}});
    if (worker.member_of == generation_) break_generation(generation_);
  }

  void lose_agent(std::size_t host) {
    if (!std::exchange(machines_[host].agent, false)) return;
    bool member = false;
    for (auto& [number, worker] : workers_) {
      if (worker.host != host || !std::exchange(worker.alive, false)) continue;
      member |= worker.member_of == generation_;
    }
    apply(AgentLost{host, {Errc::unavailable, "no heartbeat"}});
    if (member) break_generation(generation_);
  }

  void close(std::size_t host, Duration delay) {
    if (!machines_[host].agent) return;
    later(delay, [this, host] {
      auto& machine = machines_[host];
      if (machine.stuck || !std::exchange(machine.agent, false)) return;
      for (auto& [number, worker] : workers_) {
        if (worker.host == host) worker.alive = false;
      }
      apply(AgentClosed{host});
    });
  }

  void stop() {
    for (auto& [host, machine] : machines_) {
      if (machine.agent) machine.stuck = chance(3);
      close(host, seconds(0.1, 3));
    }
  }

  void draw_offer() {
    discovery::HostSet hosts;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (chance(70)) hosts.add({.name = name, .slots = number(1, 3)});
    }
    if (chance(20) && !hosts.empty()) hosts.add({.name = hosts.hosts()[0].name, .slots = 1});
    apply(HostsOffered{hosts});
  }

  /// A random living worker, or none.
  Worker* victim(int& number_of) {
    std::vector<int> living;
    for (const auto& [number, worker] : workers_) {
      if (worker.alive) living.push_back(number);
    }
    if (living.empty()) return nullptr;
    number_of = living[random_() % living.size()];
    return &workers_[number_of];
  }

  std::size_t any_host() { return static_cast<std::size_t>(number(0, 4)); }

  /// Something may go wrong between two events.
  void trouble() {
    if (!chance(20)) return;
    int worker = 0;
    auto* found = victim(worker);
    const int kind = number(0, 99);
    if (kind < 22) {
      if (found != nullptr) die(worker, chance(50) ? 9 : 3 << 8);
    } else if (kind < 28) {
      if (found != nullptr) found->hung = true;
    } else if (kind < 29) {
      if (found != nullptr) die(worker, 0);
    } else if (kind < 50) {
      draw_offer();
    } else if (kind < 60) {
      lose_agent(any_host());
    } else if (kind < 72) {
      apply(HostLeaving{any_host(), chance(50) ? 15 : 0, seconds(1, 20)});
    } else if (kind < 80) {
      apply(HostReturned{any_host()});
    } else if (kind < 84) {
      apply(OfferFailed{{Errc::io, "no"}});
    } else if (kind < 88) {
      apply(LauncherSuspended{});
      now_ += seconds(1, 100);
      apply(LauncherResumed{});
    } else if (kind < 89) {
      apply(LauncherSignalled{chance(50) ? 10 : 15});
    } else {
      now_ += seconds(0, 3);
    }
  }

  /// No event and no tick is left: the job runs with all that it may have, or it is over.
  void check_peace() {
    if (state_.phase == MembershipPhase::finished) return;
    ensure(state_.phase == MembershipPhase::running, "the job neither runs nor is over");
    bool hung = false;
    for (const auto& [number, worker] : workers_)
      hung |= worker.alive && worker.hung && worker.member_of == generation_;
    if (hung || (rules_.reset_limit && state_.resets >= *rules_.reset_limit)) return;
    const int most = std::min(rules_.max_np + rules_.spares, state_.hosts.room());
    ensure(state_.workers.staying() == most,
           fmt::format("{} of {} workers are there", state_.workers.staying(), most));
    const auto members = MembershipState(state_).workers.members().size();
    ensure(static_cast<int>(members) >= std::min(most, rules_.max_np), "a worker is left out");
  }

  std::mt19937_64 random_;
  TimePoint now_{std::chrono::seconds(100)};
  ElasticRules rules_;
  MembershipChecker checker_;
  MembershipState state_;
  std::multimap<TimePoint, std::function<void()>> agenda_;
  std::map<int, Worker> workers_;
  std::map<std::size_t, Machine> machines_;
  std::uint64_t generation_ = 0;
  bool broken_ = true;
  bool peace_ = false;
};

}  // namespace horo::test
