// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// One host's agent over the generations of a job. It passes the agent's reports on, and replaces
/// an agent that is lost before it has taken a further assignment: no rank has been started then.
/// Thread: the loop's.
///
///   working -> waiting -> assigned -> working    assigned: it has not taken the assignment yet
///              waiting -> leaving                it was released
///   any -> gone
class HostLink final : public AgentEvents {
 public:
  struct Hooks {
    /// An agent was lost before it took its assignment. False: no other one is to be started,
    /// because the generation is being stopped.
    std::function<bool(std::size_t host)> may_replace;
    Task on_left;  ///< An agent that had no part in the current generation is gone.
  };

  /// Keeps `starter`, because the agent's connection uses it. `loop` and `hooks` outlive the link.
  HostLink(Loop& loop, std::shared_ptr<Starter> starter, const Hooks& hooks);

  /// Gives `spec` to the agent that waits, or else to a new one. `news` gets the reports, and
  /// on_finished in place of on_waiting. Both outlive the assignment.
  void start(std::size_t host, const AgentSpec& spec, AgentEvents& news);

  /// An agent that waits is to leave. No report follows.
  void release();

  Agent* agent() { return agent_.get(); }

  /// As Agent::feed_stdin and close_stdin. An agent that replaces one that was lost with the input
  /// gets the same input.
  void feed_stdin(std::string_view bytes);
  void close_stdin();

  /// As Agent::step, after the host's name: "host n1: ...". Empty also if there is no agent.
  std::string step() const;

  bool waits() const { return stage_ == Stage::waiting; }

  bool is_gone() const { return stage_ == Stage::gone; }

  /// Whether the agent had another assignment before.
  bool is_reused() const { return reused_; }

  void on_ready(const HostFacts& facts) override { news_->on_ready(facts); }

  void on_control_group(const ControlGroupInfo& control_group) override;

  void on_started(Rank rank, int pid) override { news_->on_started(rank, pid); }

  void on_spawn_failed(Rank rank, const Error& error) override {
    news_->on_spawn_failed(rank, error);
  }

  void on_output(Rank rank, Stream stream, std::string_view bytes) override {
    news_->on_output(rank, stream, bytes);
  }

  void on_exit(const RankExit& exit) override { news_->on_exit(exit); }

  void on_called(const std::vector<elastic::MembershipCall>& calls) override {
    news_->on_called(calls);
  }

  void on_stdin_room() override { news_->on_stdin_room(); }

  void on_end_asked(int number) override;

  void on_timeline(const SavedTimeline& saved) override { news_->on_timeline(saved); }

  void on_answer(std::size_t part, const Answer& answer) override {
    news_->on_answer(part, answer);
  }

  void on_waiting(int survivors) override;
  void on_finished(int survivors) override;
  void on_lost(const Error& error) override;

 private:
  enum class Stage : std::uint8_t { working, waiting, assigned, leaving, gone };

  /// Standard input since an agent got its further assignment.
  struct Input {
    std::string bytes;
    bool fed = false;
    bool closed = false;
  };

  void on_note(std::string_view text) override { news_->on_note(text); }

  void start_new();
  void repeat_input();
  bool has_left();

  Loop& loop_;
  const std::shared_ptr<Starter> starter_;
  const Hooks& hooks_;
  std::size_t host_ = 0;
  const AgentSpec* spec_ = nullptr;
  AgentEvents* news_ = nullptr;
  std::unique_ptr<Agent> agent_;
  Stage stage_ = Stage::working;
  bool reused_ = false;
  std::optional<Input> unconfirmed_;  ///< Until the agent has taken its further assignment.
  Subscription replacement_;          ///< Starts another agent in the next turn of the loop.
};

}  // namespace horo::launcher
