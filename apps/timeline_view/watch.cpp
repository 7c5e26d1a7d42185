// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/watch.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <unistd.h>

#include "apps/common/tools.hpp"
#include "apps/timeline_view/attention.hpp"
#include "apps/timeline_view/elsewhere.hpp"
#include "apps/timeline_view/live_job.hpp"
#include "apps/timeline_view/memories.hpp"
#include "apps/timeline_view/output.hpp"
#include "apps/timeline_view/whole_job.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "timeline/ticks.hpp"

namespace horo::apps {

namespace {

constexpr Duration kPatience = std::chrono::seconds(20);   ///< With hosts that ssh leads to.
constexpr Duration kForAnswers = std::chrono::seconds(1);  ///< Of agents.
constexpr const char* kHome = "\x1b[H\x1b[J";

using Show = std::function<bool(const LiveView&)>;

enum class Wanted {
  rows,     ///< What each rank is about.
  figures,  ///< Of this host's ranks: nobody has all records of the others.
};

/// What a job is looked at through: its ranks' memory here, its launcher, and ssh.
class Sight {
 public:
  static Result<Sight> open(const std::string& what, Wanted wanted) {
    HORO_TRY(auto found, find_job(what));
    if (wanted == Wanted::figures) {
      if (found.memories.empty()) {
        return fail(Errc::not_found,
                    "no rank of job '{}' runs on this host, whose figures these are; horo top "
                    "shows the ranks of all hosts",
                    found.id);
      }
      found.launcher.reset();
    }
    Sight sight;
    sight.id_ = found.id;
    if (found.launcher) {
      auto whole = WholeJob::attach(*found.launcher);
      if (!whole && found.memories.empty()) return Failure(std::move(whole).error());
      if (whole) {
        sight.whole_ = std::move(*whole);
      } else {
        sight.problem_ = whole.error().message;
      }
    }
    if (found.memories.empty()) return sight;
    auto here = LiveJob::attach(std::move(found.memories));
    if (!here && !sight.problem_.empty()) return fail(Errc::unavailable, "{}", sight.problem_);
    if (!here && sight.whole_ == nullptr) return Failure(std::move(here).error());
    if (here) sight.here_ = std::move(*here);
    return sight;
  }

  Result<LiveView> look(const WatchOptions& options) {
    auto view = here_ != nullptr ? here_->refresh(options.interval) : LiveView{.job = id_};
    if (here_ == nullptr) view.now_ns = timeline::take_anchor().wall_ns;
    if (whole_ != nullptr) whole_->add_to(view, std::min(options.interval, kForAnswers));
    if (elsewhere_ == nullptr && !options.hosts.empty()) {
      HORO_TRY(elsewhere_, Elsewhere::start(options.hosts, id_, options.interval, options.once));
      if (options.once) elsewhere_->await(kPatience);
    }
    if (elsewhere_ != nullptr) elsewhere_->add_to(view);
    if (!problem_.empty()) view.problems.push_back(problem_);
    view.others = others(view);
    return view;
  }

  /// What wakes at the end of it; with a launcher looks tell.
  std::vector<int> processes() const {
    return whole_ != nullptr ? std::vector<int>() : here_->processes();
  }

  bool ended() const { return whole_ != nullptr ? whole_->ended() : here_->processes().empty(); }

  std::string last_words() const {
    return whole_ != nullptr ? fmt::format("job {} has ended\n", id_)
                             : fmt::format("the ranks of job {} here have ended\n", id_);
  }

 private:
  std::string others(const LiveView& view) const {
    if (whole_ != nullptr) return "the others have recorded nothing yet";
    const auto launcher = view.rows.empty() ? "" : launcher_address(view.rows.front().pid);
    if (launcher.empty())
      return "the others are on other hosts: horo top --hosts HOST,... shows them too";
    return fmt::format(
        "the others are on other hosts: horo top shows all where horo run was started, at {}",
        launcher);
  }

  std::string id_;
  std::unique_ptr<LiveJob> here_;
  std::unique_ptr<WholeJob> whole_;
  std::unique_ptr<Elsewhere> elsewhere_;
  std::string problem_;  ///< Why there is no `whole_` although there is a launcher.
};

Result<int> watch(const WatchOptions& options, Wanted wanted, const Show& show,
                  std::string& last_words) {
  HORO_TRY(auto sight, Sight::open(options.what, wanted));
  Attention attention;
  for (bool last = options.once;;) {
    HORO_TRY(const auto view, sight.look(options));
    if (!show(view)) return exit_code::kFailure;
    if (last) return exit_code::kOk;
    const auto wake =
        sight.ended() ? Wake::ended : attention.wait(options.interval, sight.processes());
    if (wake == Wake::quit)
      return attention.signal() == 0 ? exit_code::kOk : exit_code::kSignalBase + attention.signal();
    if (wake == Wake::due) continue;
    last = true;
    last_words = sight.last_words();
  }
}

}  // namespace

bool print(std::string_view text) {
  if (write_out(text)) return true;
  log::error("timeline-view", "{}", fail_errno(errno, "standard output").take().message);
  return false;
}

Result<int> watch_ranks(const WatchOptions& options) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  std::string last_words;
  std::string shown;
  std::optional<Screen> screen;
  const auto show = [&](const LiveView& view) {
    if (options.json) return print(live_json(view));
    if (options.once) return print(live_table(view, 0, 0));
    if (!terminal) return print(live_lines(view));
    if (!screen) screen.emplace();
    shown = live_table(view, screen->width(), screen->height());
    return print(kHome + shown);
  };
  auto code = watch(options, Wanted::rows, show, last_words);
  screen.reset();
  if (code && !options.json && !print(shown + last_words)) return exit_code::kFailure;
  return code;
}

Result<int> follow_job(const WatchOptions& options) {
  std::string last_words;
  const auto show = [&](const LiveView& view) {
    return print(options.json ? one_line(as_json(view.figures)) : follow_text(view));
  };
  auto code = watch(options, Wanted::figures, show, last_words);
  if (code && !options.json && !print(last_words)) return exit_code::kFailure;
  return code;
}

}  // namespace horo::apps
