// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/watch.hpp"

#include <functional>
#include <optional>
#include <unistd.h>

#include "apps/common/tools.hpp"
#include "apps/timeline_view/attention.hpp"
#include "apps/timeline_view/elsewhere.hpp"
#include "apps/timeline_view/live_job.hpp"
#include "apps/timeline_view/output.hpp"
#include "base/exit_code.hpp"

namespace horo::apps {

namespace {

constexpr Duration kPatience = std::chrono::seconds(20);  ///< With other hosts.
constexpr const char* kHome = "\x1b[H\x1b[J";

using Show = std::function<bool(const LiveView&)>;

Result<int> watch(const WatchOptions& options, const Show& show, std::string& last_words) {
  HORO_TRY(const auto job, LiveJob::attach(options.what));
  std::unique_ptr<Elsewhere> elsewhere;
  Attention attention;
  for (bool last = options.once;;) {
    auto view = job->refresh(options.interval);
    if (elsewhere == nullptr && !options.hosts.empty()) {
      HORO_TRY(elsewhere,
               Elsewhere::start(options.hosts, view.job, options.interval, options.once));
      if (options.once) elsewhere->await(kPatience);
    }
    if (elsewhere != nullptr) elsewhere->add_to(view);
    if (!show(view)) return exit_code::kFailure;
    if (last) return exit_code::kOk;
    const auto processes = job->processes();
    const auto wake = processes.empty() ? Wake::ended : attention.wait(options.interval, processes);
    if (wake == Wake::quit)
      return attention.signal() == 0 ? exit_code::kOk : exit_code::kSignalBase + attention.signal();
    if (wake == Wake::due) continue;
    last = true;
    last_words = fmt::format("the ranks of job {} here have ended\n", view.job);
  }
}

}  // namespace

Result<int> watch_ranks(const WatchOptions& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  std::string last_words;
  std::string shown;
  std::optional<Screen> screen;
  const auto show = [&](const LiveView& view) {
    if (options.json) return write_out(live_json(view));
    if (options.once) return write_out(live_table(view, 0, 0));
    if (!terminal) return write_out(live_lines(view));
    if (!screen) screen.emplace();
    shown = live_table(view, screen->width(), screen->height());
    return write_out(kHome + shown);
  };
  auto code = watch(options, show, last_words);
  screen.reset();
  if (code && !options.json && !write_out(shown + last_words)) return exit_code::kFailure;
  return code;
}

Result<int> follow_job(const WatchOptions& options) {
  std::string last_words;
  const auto show = [&](const LiveView& view) {
    return write_out(options.json ? one_line(as_json(view.figures)) : follow_text(view));
  };
  auto code = watch(options, show, last_words);
  if (code && !options.json && !write_out(last_words)) return exit_code::kFailure;
  return code;
}

}  // namespace horo::apps
