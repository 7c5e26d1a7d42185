// SPDX-License-Identifier: Apache-2.0
// A Starter without processes. A test decides what the agents report, and reads the calls that they
// got.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/starter.hpp"

namespace horo::launcher {

class FakeStarter final : public Starter {
 public:
  /// The state of one agent for the test; lives as long as the starter.
  struct Host {
    AgentSpec spec;
    AgentEvents* events = nullptr;
    std::vector<std::string> calls;       ///< "stop 1", "kill", "signal 10", "taken 64 of 3", ...
    std::vector<WorkerIdentity> spawned;  ///< By Agent::spawn, in order.
    std::vector<elastic::CallAnswer> answered;  ///< By Agent::answer, in order.
    int answer_messages = 0;                    ///< Calls of Agent::answer.
    std::string input;
    std::string step;        ///< The step that the agent reports until it is ready.
    bool answers = true;     ///< Whether it answers questions about its ranks.
    bool alive = true;       ///< Whether the Agent still exists.
    bool assignable = true;  ///< Whether it takes a further assignment.

    int count(const std::string& call) const {
      return static_cast<int>(std::count(calls.begin(), calls.end(), call));
    }
  };

  /// The i-th start from now fails with this error; without a value all succeed.
  std::optional<std::pair<int, Error>> failure;

  std::string_view name() const override { return "fake"; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    if (failure && failure->first-- == 0) return Failure(failure->second);
    hosts_.push_back(std::make_unique<Host>(Host{.spec = spec, .events = &events}));
    return std::unique_ptr<Agent>(std::make_unique<FakeAgent>(*hosts_.back()));
  }

  Host& host(std::size_t index) { return *hosts_[index]; }

  std::size_t started() const { return hosts_.size(); }

 private:
  class FakeAgent final : public Agent {
   public:
    explicit FakeAgent(Host& host) : host_(host) {}

    ~FakeAgent() override { host_.alive = false; }

    void begin(const AgentSpec& spec) override {
      host_.spec = spec;
      host_.calls.emplace_back("begin");
    }

    bool assign(const AgentSpec& spec) override {
      if (!host_.assignable) return false;
      host_.spec = spec;
      host_.calls.emplace_back("assign");
      return true;
    }

    void release() override { host_.calls.emplace_back("release"); }

    std::string step() const override { return host_.step; }

    void signal(int number) override { host_.calls.push_back(fmt::format("signal {}", number)); }

    void stop(const Poison& cause, std::string_view) override {
      host_.calls.push_back(fmt::format("stop {}", cause.rank));
    }

    void kill() override { host_.calls.emplace_back("kill"); }

    void dismiss() override {}

    void feed_stdin(std::string_view bytes) override { host_.input += bytes; }

    void close_stdin() override { host_.calls.emplace_back("close stdin"); }

    void output_taken(Rank rank, std::size_t bytes) override {
      host_.calls.push_back(fmt::format("taken {} of {}", bytes, rank));
    }

    void spawn(std::vector<WorkerIdentity> workers) override {
      for (const auto& worker : workers)
        host_.calls.push_back(fmt::format("spawn {}", worker.rank));
      std::ranges::move(workers, std::back_inserter(host_.spawned));
    }

    void end_worker(Rank worker) override {
      host_.calls.push_back(fmt::format("end worker {}", worker));
    }

    void notice(std::uint64_t sequence, std::uint32_t flags) override {
      host_.calls.push_back(fmt::format("notice {} {}", sequence, flags));
    }

    void answer(std::vector<elastic::CallAnswer> answers) override {
      ++host_.answer_messages;
      std::ranges::move(answers, std::back_inserter(host_.answered));
    }

    void end_meeting(std::uint64_t generation) override {
      host_.calls.push_back(fmt::format("end meeting {}", generation));
    }

    void close() override { host_.calls.emplace_back("close"); }

    bool ask(std::size_t part, const Question& question) override {
      const auto* fetch = std::get_if<Fetch>(&question);
      host_.calls.push_back(fetch == nullptr
                                ? fmt::format("look {}", part)
                                : fmt::format("fetch {} {} {}", part, fetch->asker, fetch->offset));
      return host_.answers;
    }

   private:
    Host& host_;
  };

  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace horo::launcher
