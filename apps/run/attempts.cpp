// SPDX-License-Identifier: Apache-2.0
#include "apps/run/attempts.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include "base/exit_code.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "discovery/this_machine.hpp"

namespace horo::apps {

namespace {

using namespace std::chrono_literals;

constexpr Duration kForHosts = 10min;  ///< For enough hosts to be there again.
constexpr Duration kLook = 5s;         ///< Between two looks.

void tell(const std::string& text) {
  const auto line = fmt::format("horo: {}\n", text);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

/// The time between two attempts, which a signal ends.
class Pause {
 public:
  explicit Pause(const Settings& settings) : notice_(number_of(settings.get(knobs::kSignal))) {
    auto loop = Loop::make();
    if (!loop) return;
    loop_ = std::move(*loop);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      struct sigaction now {};

      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
      auto subscription = loop_->on_signal(number, [this, number] { heard(number); });
      if (subscription) signals_.push_back(std::move(*subscription));
    }
  }

  /// Waits, and returns the exit code of `horo run` if a signal has asked for its end.
  std::optional<int> wait(Duration duration) {
    if (loop_ == nullptr) return exit_code::kFailure;
    const auto timer = loop_->after(duration, [this] { loop_->stop(); });
    if (!code_) loop_->run();
    return code_;
  }

 private:
  /// SIGUSR1 and SIGUSR2 are the ranks', of which there are none.
  void heard(int number) {
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    if (number == notice_) {
      code_ = exit_code::kQueueAgain;
    } else if (ends) {
      code_ = exit_code::kSignalBase + number;
    }
    if (code_) loop_->stop();
  }

  const int notice_;
  std::unique_ptr<Loop> loop_;
  std::vector<Subscription> signals_;
  std::optional<int> code_;
};

class Attempts {
 public:
  Attempts(RunInvocation invocation, PlanContext context, RunFiles& files, History& history)
      : invocation_(std::move(invocation)),
        context_(std::move(context)),
        files_(files),
        history_(history) {}

  Result<int> run(Plan plan) {
    // Ranks keep their number, whatever hosts there will be.
    if (!context_.file) invocation_.options.np = static_cast<int>(plan.placement.ranks.size());
    for (;;) {
      auto end = run_plan(invocation_, std::move(plan), files_, history_);
      if (!end && history_.earlier.empty()) return Failure(std::move(end).error());
      if (!end) {
        tell(fmt::format("the job could not be started anew: {}", end.error().message));
        return history_.earlier.back().exit_code;
      }
      if (!end->again) return end->code;
      Pause pause(invocation_.settings);
      leave_out(end->bad_hosts);
      ++context_.attempt;
      auto next = plan_again(pause, end->code);
      if (const auto* code = std::get_if<int>(&next)) return *code;
      plan = std::get<Plan>(std::move(next));
    }
  }

 private:
  /// What follows: an attempt, or the end of `horo run` with an exit code.
  using Next = std::variant<Plan, int>;

  void leave_out(const std::vector<std::string>& hosts) {
    // This machine is here, whatever became of its agent.
    const discovery::OwnNames own;
    for (const auto& host : hosts) {
      if (!own.has(host)) context_.lost.push_back(host);
    }
  }

  /// Without the lost hosts, else with all there are, as soon as they are enough.
  Next plan_again(Pause& pause, int code) {
    if (const auto ended = pause.wait(launcher::restart_pause(history_.restarts.size() - 1)))
      return *ended;
    const auto now = [] { return SteadyClock::instance().now(); };
    auto end = now() + kForHosts;
    if (const auto limit = invocation_.settings.get(knobs::kTimeout))
      end = std::min(end, history_.begin + *limit);
    for (;;) {
      auto plan = make_plan(invocation_, context_);
      if (plan) {
        // Whatever came meanwhile.
        if (const auto ended = pause.wait(Duration::zero())) return *ended;
        return std::move(*plan);
      }
      if (now() >= end) {
        tell(fmt::format("given up waiting for hosts: {}", plan.error().message));
        return code;
      }
      // A host that is back is as good as any other.
      if (!std::exchange(context_.lost, {}).empty())
        tell("the hosts that are left have too few slots; trying all again soon");
      if (const auto ended = pause.wait(std::min(kLook, Duration(end - now())))) return *ended;
    }
  }

  RunInvocation invocation_;
  PlanContext context_;
  RunFiles& files_;
  History& history_;
};

}  // namespace

Result<int> run_attempts(const RunInvocation& invocation, const PlanContext& context, Plan plan,
                         RunFiles& files, History& history) {
  return Attempts(invocation, context, files, history).run(std::move(plan));
}

}  // namespace horo::apps
