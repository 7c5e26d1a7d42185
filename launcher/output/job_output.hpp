// SPDX-License-Identifier: Apache-2.0
// The output of all ranks on its way to the screen, the log files and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/output/line_assembler.hpp"
#include "launcher/output/line_grouper.hpp"
#include "launcher/output/line_mixer.hpp"
#include "launcher/output/log_files.hpp"
#include "launcher/output/output_window.hpp"
#include "launcher/output/screen.hpp"
#include "launcher/output/tag.hpp"
#include "launcher/output/tail.hpp"

namespace horo::launcher {

/// The form of the time in front of a line.
enum class TimeStyle : std::uint8_t { iso, asctime };

struct OutputOptions {
  std::vector<bool> shown{};  ///< By rank, whether the screen shows it; empty: all.
  TagFormat tag;              ///< In front of each line on the screen.
  bool timestamps = false;    ///< Put the time in front of the tag, on screen and in files.
  TimeStyle time_style = TimeStyle::iso;
  bool colours = false;  ///< Colour the tags if the screen is a terminal.
  /// Join equal lines of several ranks; nullopt: on a terminal that shows more than kMany ranks.
  std::optional<bool> fold{};
  bool cursor = false;        ///< The terminal understands sequences that erase.
  bool tagged_files = false;  ///< Lines in files have the tag too, as Horovod's do.
  /// Bytes of a rank that may be in transit; 0: output_window() of the ranks at the start.
  std::uint32_t window = 0;
  std::string job_id;
  int out_fd = 1;
  int err_fd = 2;
};

struct RankLabel {
  LocalRank local_rank{0};
  std::string host;
};

/// Writes the lines of all ranks, each complete and behind its tag. Memory is bounded as long as a
/// rank sends at most output_window() bytes beyond those that on_taken() has reported.
/// Thread: the loop's.
class JobOutput {
 public:
  static constexpr std::size_t kMany =
      8;  ///< With more ranks than this, a terminal joins equal lines.

  JobOutput(Loop& loop, OutputOptions options, std::vector<RankLabel> ranks,
            std::optional<LogFiles> files);

  /// One more rank, whose number is that of the ranks so far. Equal lines of ranks are not joined
  /// in a job that gets more ranks.
  void add_rank(RankLabel label);

  /// Called when `bytes` more bytes of a rank have reached the screen's reader.
  void on_taken(std::function<void(Rank, std::size_t bytes)> task) { on_taken_ = std::move(task); }

  /// Called once when the reader of the screen is gone. Without a task, a warning is logged.
  void on_closed(Task task) { on_closed_ = std::move(task); }

  void take(Rank rank, Stream stream, std::string_view bytes);

  /// The rank has ended: writes its incomplete lines.
  void finish(Rank rank);

  /// Writes the launcher's own text on standard error, in order with the ranks' lines.
  void say(std::string_view text);

  /// Calls `task` in a later turn of the loop, once everything is written.
  void when_drained(Task task);

  /// Hands the log files to the job's next generation, which appends to them.
  std::optional<LogFiles> take_files() {
    auto files = std::move(files_);
    files_.reset();
    return files;
  }

  std::vector<std::string> last_lines(Rank rank) const { return ranks_[rank.index()].tail.lines(); }

 private:
  struct StreamState {
    LineAssembler lines;
    LineMixer file_mixer;
    std::string screen_tag;  // Rendered once, unless it contains the time.
    std::string file_tag;
    std::string fold_key;  // The tag without rank and time.
  };

  struct RankState {
    RankLabel label;
    StreamState streams[2];
    Tail tail;
    std::size_t taken = 0;  // Delivered bytes that on_taken has not reported yet.
  };

  struct Pane {
    std::unique_ptr<Screen> screen;
    LineMixer mixer;
    DeliveryTracker deliveries;
    std::optional<LineGrouper> grouper;
    Subscription row_timer;  // Until the next row is due.
    bool colours = false;
  };

  static std::size_t index(Stream stream) { return stream == Stream::out ? 0 : 1; }

  Pane& pane(Stream stream) { return panes_[stream == Stream::err && panes_.size() > 1 ? 1 : 0]; }

  void add_pane(int fd);
  void complain(int number, const Error& error);

  bool shows(Rank rank) const {
    const auto& shown = options_.shown;
    return shown.empty() || (rank.index() < shown.size() && shown[rank.index()]);
  }

  TagFields fields_of(Rank rank, Stream stream) const;
  std::string paint(const Pane& pane, Rank rank, std::string tag) const;
  void add(Rank rank, Stream stream, const LinePiece& piece);
  void render_tags(Rank rank, Stream stream);
  enum class Rows : std::uint8_t { due, all };
  void put_rows(Pane& pane, Rows which);
  void put_row(Pane& pane, const LineGrouper::Row& row);
  void show_half_lines();
  void write_file(Rank rank, Stream stream);
  void after_write(Pane& pane);
  void count_taken(Pane& pane);
  std::size_t backlog() const;

  Loop& loop_;
  OutputOptions options_;
  std::vector<RankState> ranks_;
  std::vector<Pane> panes_;  // One, if both streams are the same terminal, pipe or file.
  std::optional<LogFiles> files_;
  bool gets_more_ranks_ = false;  // Those that end leave no descriptors behind.
  std::string file_text_;
  std::string now_;          // ISO time of the current chunk.
  std::string time_front_;   // The time in front of the tag; empty: none.
  const std::size_t grain_;  // on_taken reports at least so many bytes at once.
  Subscription half_line_;   // Until an incomplete line of a single rank is shown.
  Task on_drained_;
  std::function<void(Rank, std::size_t)> on_taken_;
  Task on_closed_;
};

/// "2026-01-20 12:00:01.250" or "Tue Jan 20 12:00:01 2026", local time, now.
std::string time_text(TimeStyle style);

}  // namespace horo::launcher
