// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/watch.hpp"

#include <cerrno>
#include <functional>
#include <optional>
#include <unistd.h>

#include "apps/common/running_job/job_observer.hpp"
#include "apps/common/running_job/terminal_session.hpp"
#include "apps/common/tools.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::apps {

namespace {

constexpr const char* kHome = "\x1b[H\x1b[J";

using Show = std::function<bool(const timeline::LiveView&)>;

Result<int> watch(const WatchOptions& options, Wanted wanted, const Show& show,
                  std::string& end_text) {
  HORO_TRY(auto observer, JobObserver::open(options, wanted));
  TerminalSession session;
  for (bool last = options.once;;) {
    HORO_TRY(const auto view, observer.look());
    if (!show(view)) return exit_code::kFailure;
    if (last) return exit_code::kOk;
    const auto wake =
        observer.ended() ? WakeReason::ended : session.wait(options.interval, observer.processes());
    if (wake == WakeReason::quit)
      return session.signal() == 0 ? exit_code::kOk : exit_code::kSignalBase + session.signal();
    if (wake == WakeReason::due) continue;
    last = true;
    end_text = observer.end_text();
  }
}

}  // namespace

bool print(const WatchOptions& options, std::string_view text) {
  if (write_out(text)) return true;
  log::error(options.program, "{}", fail_errno(errno, "standard output").take().message);
  return false;
}

Result<int> watch_ranks(const WatchOptions& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  std::string end_text;
  std::string shown;
  std::optional<AlternateScreen> screen;
  const auto show = [&](const timeline::LiveView& view) {
    if (options.json) return print(options, timeline::live_json(view));
    if (options.once) return print(options, timeline::live_table(view, 0, 0));
    if (!terminal) return print(options, timeline::live_lines(view));
    if (!screen) screen.emplace();
    shown = timeline::live_table(view, screen->width(), screen->height());
    return print(options, kHome + shown);
  };
  auto code = watch(options, Wanted::rows, show, end_text);
  screen.reset();
  if (code && !options.json && !print(options, shown + end_text)) return exit_code::kFailure;
  return code;
}

Result<int> follow_job(const WatchOptions& options) {
  std::string end_text;
  const auto show = [&](const timeline::LiveView& view) {
    return print(options, options.json ? timeline::one_line(timeline::as_json(view.figures))
                                       : timeline::follow_text(view));
  };
  auto code = watch(options, Wanted::figures, show, end_text);
  if (code && !options.json && !print(options, end_text)) return exit_code::kFailure;
  return code;
}

}  // namespace horo::apps
