// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/planning.hpp"

#include <cerrno>
#include <optional>
#include <sys/eventfd.h>
#include <system_error>
#include <utility>

#include "base/unique_fd.hpp"
#include "launcher/plan/job_facts.hpp"

namespace horo::launcher {

/// The thread writes the plan and then posts; the loop reads it after that.
struct Planning::State {
  Answer answer;
  UniqueFd cancel;  ///< An eventfd: nobody wants the plan any longer.
  std::optional<Result<JobPlan>> plan;
};

Result<JobPlan> probe_and_plan(const JobRequest& request) {
  HORO_TRY(auto facts, probe_job(request));
  return plan_job(request, std::move(facts));
}

Planning::Planning(Loop& loop, JobRequest request, Answer answer)
    : state_(std::make_shared<State>(State{
          .answer = std::move(answer), .cancel = UniqueFd(eventfd(0, EFD_CLOEXEC)), .plan = {}})) {
  // The loop forgets the task when this is destroyed before the task runs.
  const auto tell = [&loop, weak = std::weak_ptr(state_)] {
    loop.post([weak] {
      if (const auto state = weak.lock()) state->answer(*state->plan);
    });
  };
  if (!state_->cancel) {
    state_->plan.emplace(fail_errno(errno, "making an eventfd to plan with"));
    tell();
    return;
  }
  request.cancel = state_->cancel.value();
  try {
    // Its signal mask stays that of the program, because the programs that it runs inherit it.
    thread_ = std::thread([tell, state = state_.get(), request = std::move(request)] {
      state->plan.emplace(probe_and_plan(request));
      tell();
    });
  } catch (const std::system_error& error) {
    state_->plan.emplace(fail(Errc::unavailable, "no thread to plan with; raise ulimit -u ({})",
                              error.code().message()));
    tell();
  }
}

Planning::~Planning() {
  if (!thread_.joinable()) return;
  eventfd_write(state_->cancel.value(), 1);
  thread_.join();
}

}  // namespace horo::launcher
