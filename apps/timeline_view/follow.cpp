// SPDX-License-Identifier: Apache-2.0
// Follows a trace that is being written. Its writer overwrites the closing bracket with each new
// event, so that bracket is read only when more follows it.
#include "apps/timeline_view/follow.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "apps/common/running_job/terminal_session.hpp"
#include "apps/common/running_job/watch.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/input/chrome_operations.hpp"
#include "timeline/record/timeline_file.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::apps {

namespace {

/// A file that no process has open counts as complete after so many intervals without growth.
constexpr int kQuiet = 10;

bool same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Whether another process of this user has the file open.
bool is_open_elsewhere(const struct stat& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto self = std::to_string(getpid());
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid == self || pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code closed;
    for (const auto& entry : fs::directory_iterator(process.path() / "fd", closed)) {
      struct stat held {};

      if (stat(entry.path().c_str(), &held) == 0 && same(held, file)) return true;
    }
  }
  return false;
}

/// How many of `bytes` will not be overwritten: all but the closing bracket of the array.
std::size_t unchanging_bytes(std::string_view bytes) {
  const auto end = bytes.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return 0;
  if (bytes[end] != ']') return end + 1;
  return end == 0 ? 0 : bytes.find_last_not_of(" \t\r\n", end - 1) + 1;
}

class Follower {
 public:
  explicit Follower(const WatchOptions& options) : options_(options) {}

  /// Follows one file from its beginning to its end.
  Status follow() {
    HORO_TRY_STATUS(open_file());
    analysis_ = std::make_unique<timeline::Analysis>(timeline::Selection{}, 0);
    timeline::ChromeOperations trace(*analysis_);
    trace_ = &trace;
    auto outcome =
        timeline::read_chrome([this](char* to, std::size_t room) { return read(to, room); },
                              [&trace](const timeline::ChromeEvent& event) { trace.take(event); });
    if (!outcome) return Failure(std::move(outcome).error().context(options_.target));
    trace.finish();
    show();
    return {};
  }

  bool goes_on() const { return renewed_ && wake_ == WakeReason::due; }

  int code() const {
    if (broken_) return exit_code::kFailure;
    return session_.signal() == 0 ? exit_code::kOk : exit_code::kSignalBase + session_.signal();
  }

 private:
  Status open_file() {
    // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
    file_ = UniqueFd(open(options_.target.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file_) return fail_errno(errno, options_.target);
    if (fstat(file_.value(), &status_) != 0) return fail_errno(errno, options_.target);
    if (!S_ISREG(status_.st_mode)) {
      return fail(Errc::unsupported, "'{}' is not a regular file; read it without --follow",
                  options_.target);
    }
    std::string first(timeline::kFileMagic.size(), '\0');
    const auto got = pread(file_.value(), first.data(), first.size(), 0);
    if (got == static_cast<ssize_t>(first.size()) && first == timeline::kFileMagic) {
      return fail(Errc::unsupported,
                  "'{}' is complete and will not grow; read it without --follow, or name a job",
                  options_.target);
    }
    offset_ = 0;
    quiet_ = 0;
    renewed_ = false;
    return {};
  }

  /// Reads bytes that will not be overwritten; waits until there are some. 0: the end.
  Result<std::size_t> read(char* to, std::size_t room) {
    for (;;) {
      const auto got = pread(file_.value(), to, room, static_cast<off_t>(offset_));
      if (got < 0) return fail_errno(errno, options_.target);
      const auto stays = unchanging_bytes({to, static_cast<std::size_t>(got)});
      if (wake_ == WakeReason::due && session_.wait(Duration{0}, {}) == WakeReason::quit)
        wake_ = WakeReason::quit;
      if (wake_ == WakeReason::quit) return std::size_t{0};
      if (stays != 0) {
        offset_ += stays;
        quiet_ = 0;
        return stays;
      }
      if (wake_ == WakeReason::ended || !wait()) return std::size_t{0};
    }
  }

  /// Waits for the file to grow. Returns false when it will not.
  bool wait() {
    show();
    if (broken_ || renewed_) return false;
    wake_ = session_.wait(options_.interval, {});
    if (wake_ == WakeReason::quit) return false;

    struct stat now {};

    const bool there = stat(options_.target.c_str(), &now) == 0;
    const bool truncated = there && std::cmp_less(now.st_size, offset_);
    renewed_ = there && (truncated || !same(now, status_));
    if (quiet_++ == 0) return true;  // The file has just grown.
    const bool held = is_open_elsewhere(status_);
    if (std::exchange(was_held_, held) && !held)
      wake_ = WakeReason::ended;  // Read once more first.
    return renewed_ || held || wake_ == WakeReason::ended || (there && quiet_ < kQuiet);
  }

  void show() {
    const auto figures =
        std::exchange(analysis_, std::make_unique<timeline::Analysis>(timeline::Selection{}, 0))
            ->finish();
    if (figures.operations != 0) {
      std::string text = options_.json ? timeline::one_line(timeline::as_json(figures))
                                       : timeline::summary_text(figures);
      for (const auto& verdict : timeline::judge(figures)) {
        if (!options_.json && verdict.kind != "none")
          text += fmt::format("* {}\n", timeline::printable(verdict.text));
      }
      if (!print(options_, text)) broken_ = true;
    }
    for (const auto& line : figures.warnings)
      log::warn("timeline-view", "{}", timeline::printable(line));
    trace_->set_sink(*analysis_);
  }

  const WatchOptions& options_;
  TerminalSession session_;
  UniqueFd file_;

  struct stat status_ {};

  std::uint64_t offset_ = 0;
  std::unique_ptr<timeline::Analysis> analysis_;
  timeline::ChromeOperations* trace_ = nullptr;
  WakeReason wake_ = WakeReason::due;
  int quiet_ = 0;
  bool was_held_ = false;
  bool renewed_ = false;  ///< The path names another file now, or the file was truncated.
  bool broken_ = false;   ///< Standard output cannot be written.
};

}  // namespace

Result<int> follow_file(const WatchOptions& options) {
  Follower follower(options);
  do {
    HORO_TRY_STATUS(follower.follow());
  } while (follower.goes_on());
  return follower.code();
}

}  // namespace horo::apps
