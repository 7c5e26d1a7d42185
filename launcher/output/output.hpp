// SPDX-License-Identifier: Apache-2.0
// Everything the ranks print on its way to the screen, the files and the report.
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
#include "launcher/output/folder.hpp"
#include "launcher/output/line_assembler.hpp"
#include "launcher/output/log_files.hpp"
#include "launcher/output/mixer.hpp"
#include "launcher/output/screen.hpp"
#include "launcher/output/tag.hpp"
#include "launcher/output/tail.hpp"
#include "launcher/output/window.hpp"

namespace horo::launcher {

/// How the time stands in front of a line.
enum class TimeStyle : std::uint8_t { iso, asctime };

struct OutputOptions {
  std::vector<bool> shown{};  ///< By rank, whether the screen has its lines; empty: all do.
  TagFormat tag;              ///< In front of each line on the screen.
  bool timestamps = false;    ///< The time in front of the tag, on the screen and in the files.
  TimeStyle time_style = TimeStyle::iso;
  bool colours = false;  ///< Tags in colour where the screen is a terminal.
  /// Equal lines of several ranks become one; nullopt: on a terminal that shows more than kMany.
  std::optional<bool> fold{};
  bool cursor = false;        ///< A terminal understands sequences that erase.
  bool tagged_files = false;  ///< The files' lines carry the tag too, as Horovod's do.
  std::string job_id;
  int out_fd = 1;
  int err_fd = 2;
};

struct RankLabel {
  LocalRank local_rank{0};
  std::string host;
};

/// Lines of all ranks, each whole and behind its tag. Memory is bounded where no more of a rank
/// comes than output_window() before on_taken() has told that it was taken. Thread: the loop's.
class Output {
 public:
  static constexpr std::size_t kMany = 8;  ///< More ranks than this are folded on a terminal.

  Output(Loop& loop, OutputOptions options, std::vector<RankLabel> ranks,
         std::optional<LogFiles> files);

  /// Called when so many more bytes of a rank have reached the screen's reader.
  void on_taken(std::function<void(Rank, std::size_t bytes)> task) { on_taken_ = std::move(task); }

  /// Called once when a reader of the screen is gone; without it that is a warning.
  void on_closed(Task task) { on_closed_ = std::move(task); }

  void take(Rank rank, Stream stream, std::string_view bytes);

  /// The rank has ended: its unterminated lines are written as they are.
  void finish(Rank rank);

  /// Text of the launcher's own, in order with the ranks' lines, on standard error.
  void say(std::string_view text);

  /// Calls `task` once nothing waits any more, in a later turn of the loop.
  void when_drained(Task task);

  /// For the job's next start, which writes behind what is there.
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
    std::string screen_tag;  // Rendered once, unless it holds the time.
    std::string file_tag;
    std::string fold_key;  // Its tag, but for the rank and the time.
  };

  struct RankState {
    RankLabel label;
    StreamState streams[2];
    Tail tail;
    std::size_t taken = 0;  // Not told yet.
  };

  struct Pane {
    std::unique_ptr<Screen> screen;
    LineMixer mixer;
    Passage passage;
    std::optional<Folder> folder;
    Subscription folding;  // Until a row is due.
    bool colours = false;
  };

  static std::size_t index(Stream stream) { return stream == Stream::out ? 0 : 1; }

  Pane& pane(Stream stream) { return panes_[stream == Stream::err && panes_.size() > 1 ? 1 : 0]; }

  void add_pane(int fd);
  void complain(int number, const Error& error);

  bool shows(Rank rank) const { return options_.shown.empty() || options_.shown[rank.index()]; }

  TagFields fields_of(Rank rank, Stream stream) const;
  std::string paint(const Pane& pane, Rank rank, std::string tag) const;
  void add(Rank rank, Stream stream, const LinePiece& piece);
  void render_tags(Rank rank, Stream stream);
  void unfold(Pane& pane, bool all);
  void put_row(Pane& pane, const Folder::Row& row);
  void show_half_lines();
  void write_file(Rank rank, Stream stream);
  void after_write(Pane& pane);
  void count_taken(Pane& pane);
  std::size_t backlog() const;

  Loop& loop_;
  OutputOptions options_;
  std::vector<RankState> ranks_;
  std::vector<Pane> panes_;  // One when both streams are the same terminal, pipe or file.
  std::optional<LogFiles> files_;
  std::string file_text_;
  std::string now_;          // ISO time of the chunk being taken.
  std::string time_front_;   // What timestamps put in front.
  const std::size_t grain_;  // Of what is told.
  Subscription half_line_;   // Of a lone rank, soon shown without its end.
  Task on_drained_;
  std::function<void(Rank, std::size_t)> on_taken_;
  Task on_closed_;
};

/// "2026-01-20 12:00:01.250" or "Tue Jan 20 12:00:01 2026", local time, now.
std::string time_text(TimeStyle style);

}  // namespace horo::launcher
