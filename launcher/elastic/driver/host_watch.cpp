// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/host_watch.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <utility>

#include "base/unique_fd.hpp"

namespace horo::launcher {

struct HostWatch::State {
  // Constant; the thread uses these.
  Ask ask;
  Duration pause;
  UniqueFd cancel;  ///< An eventfd: the watch is being destroyed.

  // The loop's.
  Handlers handlers;
  discovery::HostSet last;
  bool failed = false;  ///< The last question had no answer.

  void take(const Result<discovery::HostSet>& answer) {
    const bool failed_before = std::exchange(failed, !answer);
    if (!answer) {
      if (!failed_before) handlers.on_failure(answer.error());
      return;
    }
    if (*answer == last) return;
    last = *answer;
    handlers.on_hosts(last);
  }

  /// True: the watch is being destroyed.
  bool wait() const {
    pollfd cancelled{cancel.value(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(pause).count();
    return poll(&cancelled, 1, static_cast<int>(ms)) > 0;
  }
};

Result<std::unique_ptr<HostWatch>> HostWatch::start(Loop& loop, discovery::HostSet before, Ask ask,
                                                    Handlers handlers, Duration pause) {
  UniqueFd cancel(eventfd(0, EFD_CLOEXEC));
  if (!cancel) return fail_errno(errno, "making an eventfd to watch the hosts with");
  std::unique_ptr<HostWatch> watch(
      new HostWatch(std::make_shared<State>(State{.ask = std::move(ask),
                                                  .pause = pause,
                                                  .cancel = std::move(cancel),
                                                  .handlers = std::move(handlers),
                                                  .last = std::move(before)})));
  // The loop forgets answers that come after the watch's end.
  const auto tell = [&loop, weak = std::weak_ptr(watch->state_)](auto answer) {
    loop.post([weak, answer = std::move(answer)] {
      if (const auto state = weak.lock()) state->take(answer);
    });
  };
  try {
    // Its signal mask stays that of the program, because the programs that it runs inherit it.
    watch->thread_ = std::thread([tell, state = watch->state_.get()] {
      while (!state->wait()) tell(state->ask(state->cancel.value()));
    });
  } catch (const std::system_error& error) {
    return fail(Errc::unavailable, "no thread to watch the hosts with; raise ulimit -u ({})",
                error.code().message());
  }
  return watch;
}

HostWatch::~HostWatch() {
  if (!thread_.joinable()) return;
  eventfd_write(state_->cancel.value(), 1);
  thread_.join();
}

}  // namespace horo::launcher
