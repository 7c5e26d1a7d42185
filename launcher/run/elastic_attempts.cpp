// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/elastic_attempts.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "launcher/elastic/driver/elastic_restart.hpp"
#include "launcher/job/describe.hpp"
#include "launcher/job/job_state.hpp"
#include "launcher/run/signal_listener.hpp"

namespace horo::launcher {

namespace {

TimePoint now() {
  return SteadyClock::instance().now();
}

}  // namespace

Status ElasticAttempts::start(JobPlan plan, std::optional<LogFiles> logs, Task on_closed) {
  on_closed_ = std::move(on_closed);
  HORO_TRY(policy_, RestartPolicy::parse(request_.settings.get(knobs::kMaxRestarts),
                                         request_.settings.get(knobs::kRestartOn)));
  return begin(std::move(plan), std::move(logs));
}

Status ElasticAttempts::begin(JobPlan plan, std::optional<LogFiles> logs) {
  run_ = std::make_unique<ElasticRun>(loop_, request_, emit_,
                                      ElasticRun::Owner{.begin = restarts_.empty() ? begin_ : now(),
                                                        .earlier = earlier_,
                                                        .time_left = time_left(),
                                                        .on_closed = on_closed_,
                                                        .on_ended = [this] { ended(); },
                                                        .on_over = [this] { over(); }});
  return run_->start(std::move(plan), std::move(logs));
}

std::optional<Duration> ElasticAttempts::time_left() const {
  const auto limit = request_.settings.get(knobs::kTimeout);
  if (!limit || restarts_.empty()) return limit;
  return std::max(Duration::zero(), *limit - (now() - begin_));
}

void ElasticAttempts::ended() {
  const auto report = run_->report(run_->end());
  exit_code_ = report.end.exit_code;
  const auto decision = decide_restart(policy_, run_->state(), report.end, restarts_, now());
  if (decision.restart) restarts_.push_back(now());
  emit_(ElasticEnded{.report = report, .decision = decision, .restarts = restarts_.size()});
  restarting_ = decision.restart;
  if (restarting_) earlier_.push_back(summarize(report));
}

void ElasticAttempts::over() {
  if (!restarting_) return loop_.stop();
  if (const auto left = time_left()) {
    limit_ = loop_.after(*left, [this] {
      give_up(exit_code::kStartTimeout,
              "not restarted: --timeout passed while the job waited for its next attempt");
    });
  }
  give_up_at_.reset();
  waits_for_hosts_ = false;
  pause_ = loop_.after(restart_pause(restarts_.size() - 1), [this] { plan_next(); });
}

void ElasticAttempts::plan_next() {
  if (!give_up_at_) give_up_at_ = now() + request_.settings.get(knobs::kElasticTimeout);
  request_.restart_count = static_cast<int>(restarts_.size());
  // Training goes on with the hosts that are there; the others join.
  const int least = request_.settings.get(knobs::kMinNp);
  if (run_->hosts_may_change() && least != 0) request_.np = least;
  planning_.emplace(loop_, request_, [this](Result<JobPlan>& plan) { planned(plan); });
}

void ElasticAttempts::planned(Result<JobPlan>& plan) {
  auto made = std::move(plan);
  planning_.reset();
  // A signal may have ended the job meanwhile.
  if (!restarting_) return;
  if (!made) {
    if (now() >= *give_up_at_)
      return give_up(exit_code_,
                     fmt::format("given up waiting for hosts: {}", made.error().message));
    say_why_it_waits(made.error());
    pause_ = loop_.after(kHostsPause, [this] { plan_next(); });
    return;
  }
  auto last = std::move(run_);
  limit_.reset();
  const auto begun = begin(std::move(*made), last->take_logs());
  if (!begun) {
    run_ = std::move(last);  // The attempt that failed to begin has no end to report.
    return give_up(exit_code::kFailure,
                   fmt::format("the job could not be restarted: {}", begun.error().message));
  }
  restarting_ = false;
}

void ElasticAttempts::say_why_it_waits(const Error& error) {
  if (std::exchange(waits_for_hosts_, true)) return;
  const auto left = std::max(Duration::zero(), *give_up_at_ - now());
  const auto line = fmt::format("the next attempt waits for hosts, for at most {}: {}",
                                describe(left), error.message);
  emit_(MembershipChanged{line});
}

void ElasticAttempts::give_up(int exit_code, std::string_view why) {
  restarting_ = false;
  exit_code_ = exit_code;
  pause_.reset();
  limit_.reset();
  planning_.reset();
  auto end = run_->end();
  end.exit_code = exit_code;
  end.failure = why;
  emit_(ElasticNotRestarted{.report = run_->report(end), .why = why});
  loop_.stop();
}

void ElasticAttempts::signal(int number) {
  if (!restarting_) return run_->signal(number);
  if (!ends_programs(number)) return;
  give_up(exit_code::kSignalBase + number,
          fmt::format("not restarted: stopped by signal {}", number));
}

}  // namespace horo::launcher
