// SPDX-License-Identifier: Apache-2.0
// Workers are killed and started at random moments: while they sum, leave, ask, meet and join.
#include "elastic_job.hpp"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>

#include <catch2/catch.hpp>

using namespace elastic_test;
using horo::elastic::MembershipCall;

namespace {

/// Forms a generation of all living workers whenever all of them have called, and gives up one that
/// has lost a member.
class Launcher {
 public:
  Launcher(std::uint32_t seed, int hosts, horo::Environment extra)
      : job(kSlots, std::move(extra)), random_(seed), hosts_(hosts) {}

  void start() {
    auto& worker = job.start();
    worker.tell("serve");
    alive_.push_back({.worker = worker.number, .host = worker.number % hosts_});
  }

  void kill_one() {
    const auto at = alive_.begin() + static_cast<std::ptrdiff_t>(random_() % alive_.size());
    job[at->worker].kill(SIGKILL);
    job[at->worker].wait();
    calls_.erase(at->worker);
    alive_.erase(at);
    formed_ = false;
    if (job.generation() > 0) job.give_up();
  }

  /// Answers calls until a generation is formed, and for up to `most` microseconds longer.
  void form_and_serve(std::uint32_t most) {
    form();
    const auto until = Clock::now() + std::chrono::microseconds(random_() % most);
    while (Clock::now() < until) turn();
  }

  /// Serves until all living workers have summed in the same generation.
  void settle() {
    form();
    for (const auto& member : alive_) await_last_sum(member.worker);
    formed_ = false;
  }

  Job job;

 private:
  static constexpr int kSlots = 64;

  void form() {
    const auto until = Clock::now() + std::chrono::seconds(30);
    while (!formed_ && Clock::now() < until) turn();
    REQUIRE(formed_);
  }

  void turn() {
    for (const auto& member : alive_) {
      if (const auto call = job.take_call(member.worker))
        calls_.insert_or_assign(member.worker, *call);
    }
    if (calls_.size() < alive_.size() || alive_.empty()) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return;
    }
    job.begin();
    // The members of a host follow each other.
    std::ranges::stable_sort(alive_, {}, &Member::host);
    for (const auto& member : alive_)
      job.answer(calls_.at(member.worker), job.answer_for(alive_, member.worker, 0));
    calls_.clear();
    formed_ = true;
  }

  void await_last_sum(int worker) {
    const auto size = static_cast<int>(alive_.size());
    const auto in = fmt::format("in {} ", job.generation());
    const auto sum = fmt::format("sum {}", size * (size + 1) / 2);
    for (std::string line;;) {
      line = job[worker].hear();
      INFO("worker " << worker << " of generation " << job.generation() << " says " << line);
      REQUIRE(line != "(nothing)");
      REQUIRE_FALSE(line.starts_with("failed unavailable"));
      if (!line.starts_with(in)) continue;
      REQUIRE(job[worker].hear() == sum);
      return;
    }
  }

  std::minstd_rand random_;
  const int hosts_;
  std::vector<Member> alive_;
  std::map<int, MembershipCall> calls_;
  bool formed_ = false;
};

/// HORO_ELASTIC_SEEDS=N runs N histories of each kind.
int seeds() {
  const char* wanted = std::getenv("HORO_ELASTIC_SEEDS");
  return wanted == nullptr ? 3 : std::atoi(wanted);
}

void run(std::uint32_t seed, int hosts) {
  INFO("seed " << seed << ", " << hosts << " hosts");
  Launcher launcher(seed, hosts, {{"HORO_CPU_OPERATIONS", hosts > 1 ? "tcp" : "auto"}});
  for (int i = 0; i < 4; ++i) launcher.start();
  launcher.settle();
  for (int round = 0; round < 6; ++round) {
    launcher.kill_one();
    launcher.start();
    // The next one is lost while the ranks of that generation meet, join or have begun to sum.
    launcher.form_and_serve(round % 2 == 0 ? 4'000 : 40'000);
    launcher.kill_one();
    launcher.start();
    launcher.settle();
  }
}

}  // namespace

TEST_CASE("workers of one host that are killed at random moments are replaced") {
  for (int seed = 1; seed <= seeds(); ++seed) run(static_cast<std::uint32_t>(seed), 1);
}

TEST_CASE("workers of two hosts that are killed at random moments are replaced") {
  for (int seed = 1; seed <= seeds(); ++seed) run(static_cast<std::uint32_t>(seed), 2);
}
