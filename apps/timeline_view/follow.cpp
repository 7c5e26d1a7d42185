// SPDX-License-Identifier: Apache-2.0
// A trace that grows: what is at its end may be overwritten, so that it is valid JSON at every
// moment, and is read only when more has come.
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "apps/common/tools.hpp"
#include "apps/timeline_view/attention.hpp"
#include "apps/timeline_view/chrome_trace.hpp"
#include "apps/timeline_view/output.hpp"
#include "apps/timeline_view/verdict.hpp"
#include "apps/timeline_view/watch.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "timeline/file.hpp"

namespace horo::apps {

namespace {

constexpr int kQuiet = 10;  ///< Intervals without growth after which a file that nobody has ends.

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

/// How much of `bytes` stays as it is when more is written: all but the array's end.
std::size_t settled(std::string_view bytes) {
  const auto end = bytes.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return 0;
  if (bytes[end] != ']') return end + 1;
  return end == 0 ? 0 : bytes.find_last_not_of(" \t\r\n", end - 1) + 1;
}

class Follower {
 public:
  explicit Follower(const WatchOptions& options) : options_(options) {}

  /// One file from its beginning to its end.
  Status follow() {
    HORO_TRY_STATUS(open_file());
    analysis_ = std::make_unique<Analysis>(Selection{}, 0);
    ChromeTrace trace(*analysis_);
    trace_ = &trace;
    auto outcome =
        timeline::read_chrome([this](char* to, std::size_t room) { return read(to, room); },
                              [&trace](const timeline::ChromeEvent& event) { trace.take(event); });
    if (!outcome) return Failure(std::move(outcome).error().context(options_.what));
    trace.finish();
    show();
    return {};
  }

  bool goes_on() const { return renewed_ && wake_ == Wake::due; }

  int code() const {
    if (broken_) return exit_code::kFailure;
    return attention_.signal() == 0 ? exit_code::kOk : exit_code::kSignalBase + attention_.signal();
  }

 private:
  Status open_file() {
    // A FIFO would wait for its writer.
    file_ = UniqueFd(open(options_.what.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file_) return fail_errno(errno, options_.what);
    if (fstat(file_.value(), &status_) != 0) return fail_errno(errno, options_.what);
    if (!S_ISREG(status_.st_mode)) {
      return fail(Errc::unsupported, "'{}' is no plain file; leave --follow out to read it",
                  options_.what);
    }
    std::string first(timeline::kFileMagic.size(), '\0');
    const auto got = pread(file_.value(), first.data(), first.size(), 0);
    if (got == static_cast<ssize_t>(first.size()) && first == timeline::kFileMagic) {
      return fail(Errc::unsupported,
                  "'{}' was saved whole and will not grow: leave --follow out, or name a job",
                  options_.what);
    }
    offset_ = 0;
    quiet_ = 0;
    renewed_ = false;
    return {};
  }

  /// What has come and stays; waits until there is some. 0: the end.
  Result<std::size_t> read(char* to, std::size_t room) {
    for (;;) {
      const auto got = pread(file_.value(), to, room, static_cast<off_t>(offset_));
      if (got < 0) return fail_errno(errno, options_.what);
      const auto stays = settled({to, static_cast<std::size_t>(got)});
      if (wake_ == Wake::due && attention_.wait(Duration{0}, {}) == Wake::quit) wake_ = Wake::quit;
      if (wake_ == Wake::quit) return std::size_t{0};
      if (stays != 0) {
        offset_ += stays;
        quiet_ = 0;
        return stays;
      }
      if (wake_ == Wake::ended || !wait()) return std::size_t{0};
    }
  }

  /// False: nothing more is to come.
  bool wait() {
    show();
    if (broken_ || renewed_) return false;
    wake_ = attention_.wait(options_.interval, {});
    if (wake_ == Wake::quit) return false;

    struct stat now {};

    const bool there = stat(options_.what.c_str(), &now) == 0;
    const bool truncated = there && std::cmp_less(now.st_size, offset_);
    renewed_ = there && (truncated || !same(now, status_));
    if (quiet_++ == 0) return true;  // It has grown a moment ago.
    const bool held = is_open_elsewhere(status_);
    if (std::exchange(was_held_, held) && !held) wake_ = Wake::ended;  // Behind the last words.
    return renewed_ || held || wake_ == Wake::ended || (there && quiet_ < kQuiet);
  }

  void show() {
    const auto figures =
        std::exchange(analysis_, std::make_unique<Analysis>(Selection{}, 0))->finish();
    if (figures.operations != 0) {
      std::string text = options_.json ? one_line(as_json(figures)) : summary_text(figures);
      for (const auto& verdict : judge(figures)) {
        if (!options_.json && verdict.kind != "none")
          text += fmt::format("* {}\n", printable(verdict.text));
      }
      if (!print(text)) broken_ = true;
    }
    for (const auto& line : figures.warnings) log::warn("timeline-view", "{}", printable(line));
    trace_->give_to(*analysis_);
  }

  const WatchOptions& options_;
  Attention attention_;
  UniqueFd file_;

  struct stat status_ {};

  std::uint64_t offset_ = 0;
  std::unique_ptr<Analysis> analysis_;
  ChromeTrace* trace_ = nullptr;
  Wake wake_ = Wake::due;
  int quiet_ = 0;
  bool was_held_ = false;
  bool renewed_ = false;  ///< Another file has its name now, or it was begun anew.
  bool broken_ = false;   ///< Nobody takes what is shown.
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
