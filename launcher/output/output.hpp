// SPDX-License-Identifier: Apache-2.0
// Everything the ranks print on its way to the screen, the files and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/output/line_assembler.hpp"
#include "launcher/output/log_files.hpp"
#include "launcher/output/mixer.hpp"
#include "launcher/output/screen.hpp"
#include "launcher/output/tag.hpp"
#include "launcher/output/tail.hpp"

namespace horo::launcher {

/// How the time stands in front of a line.
enum class TimeStyle : std::uint8_t { iso, asctime };

struct OutputOptions {
  TagFormat tag;            ///< In front of each line on the screen.
  bool timestamps = false;  ///< The time in front of the tag, on the screen and in the files.
  TimeStyle time_style = TimeStyle::iso;
  bool colours = false;       ///< Tags in colour where the screen is a terminal.
  bool tagged_files = false;  ///< The files' lines carry the tag too, as Horovod's do.
  std::string job_id;
  int out_fd = 1;
  int err_fd = 2;
};

struct RankLabel {
  LocalRank local_rank{0};
  std::string host;
};

/// Lines of all ranks, each whole and behind its tag. Memory is bounded: above kPauseAt waiting
/// bytes the ranks are to be paused until the screen has caught up. Thread: the loop's.
class Output {
 public:
  static constexpr std::size_t kPauseAt = 1024 * 1024;
  static constexpr std::size_t kResumeAt = 256 * 1024;

  Output(Loop& loop, OutputOptions options, std::vector<RankLabel> ranks,
         std::optional<LogFiles> files);

  /// Called with true when the ranks' output is to be held back, with false when it may go on.
  void on_pressure(std::function<void(bool paused)> task) { on_pressure_ = std::move(task); }

  void take(Rank rank, Stream stream, std::string_view bytes);

  /// The rank has ended: its unterminated lines are written as they are.
  void finish(Rank rank);

  /// Text of the launcher's own, in order with the ranks' lines, on standard error.
  void say(std::string_view text);

  /// Calls `task` once nothing waits any more, in a later turn of the loop.
  void when_drained(Task task);

  std::vector<std::string> last_lines(Rank rank) const { return ranks_[rank.index()].tail.lines(); }

 private:
  struct StreamState {
    LineAssembler lines;
    LineMixer file_mixer;
    std::string screen_tag;  // Rendered once, unless it holds the time.
    std::string file_tag;
  };

  struct RankState {
    RankLabel label;
    StreamState streams[2];
    Tail tail;
  };

  struct Pane {
    std::unique_ptr<Screen> screen;
    LineMixer mixer;
    bool colours = false;
  };

  static std::size_t index(Stream stream) { return stream == Stream::out ? 0 : 1; }

  Pane& pane(Stream stream) { return panes_[stream == Stream::err && panes_.size() > 1 ? 1 : 0]; }

  void add(Rank rank, Stream stream, const LinePiece& piece);
  void render_tags(Rank rank, Stream stream);
  void after_write(Stream stream);
  void check_backlog();
  std::size_t backlog() const;

  Loop& loop_;
  OutputOptions options_;
  std::vector<RankState> ranks_;
  std::vector<Pane> panes_;  // One when both streams are the same terminal, pipe or file.
  std::optional<LogFiles> files_;
  std::string file_text_;
  std::string now_;         // ISO time of the chunk being taken.
  std::string time_front_;  // What timestamps put in front.
  bool paused_ = false;
  Task on_drained_;
  std::function<void(bool)> on_pressure_;
};

/// "2026-01-20 12:00:01.250" or "Tue Jan 20 12:00:01 2026", local time, now.
std::string time_text(TimeStyle style);

}  // namespace horo::launcher
