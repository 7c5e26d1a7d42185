// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/job_output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kHalfLine = std::chrono::milliseconds(50);

bool same_file(int a, int b) {
  struct stat x {};

  struct stat y {};

  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
         x.st_rdev == y.st_rdev;
}

}  // namespace

std::string time_text(TimeStyle style) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  std::array<char, 64> text{};
  if (style == TimeStyle::asctime) {
    return {text.data(), std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &local)};
  }
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{}.{:03}", text.data(), now.tv_nsec / 1'000'000);
}

JobOutput::JobOutput(Loop& loop, OutputOptions options, std::vector<RankLabel> ranks,
                     std::optional<LogFiles> files)
    : loop_(loop),
      options_(std::move(options)),
      ranks_(ranks.size()),
      files_(std::move(files)),
      grain_((options_.window != 0 ? options_.window : output_window(ranks.size())) / 4) {
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks_[r].label = std::move(ranks[r]);
  panes_.reserve(2);  // Tasks hold references to panes, so they must not move.
  add_pane(options_.out_fd);
  if (!same_file(options_.out_fd, options_.err_fd)) add_pane(options_.err_fd);
  if (files_) {
    files_->on_error([](const Error& error) {
      log::warn("output", "{}; output of the ranks may be missing in the files; the job continues",
                error.message);
    });
  }
}

void JobOutput::add_rank(RankLabel label) {
  gets_more_ranks_ = true;
  ranks_.emplace_back().label = std::move(label);
  if (!files_ || files_->ranks() >= ranks_.size()) return;
  if (auto made = files_->add_rank(); !made)
    log::warn("output", "{}; a rank's output is missing in the files", made.error().message);
}

void JobOutput::add_pane(int fd) {
  auto& pane = panes_.emplace_back();
  const bool terminal = isatty(fd) == 1;
  pane.screen = std::make_unique<Screen>(loop_, fd);
  pane.colours = options_.colours && terminal;
  if (options_.cursor && terminal) pane.mixer.erase_redrawn();
  std::size_t shown = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) shown += shows(Rank{static_cast<int>(r)}) ? 1 : 0;
  const bool many = terminal && shown > kMany && options_.tag.names_rank();
  if (options_.fold.value_or(many)) {
    pane.grouper.emplace(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (const Rank rank{static_cast<int>(r)}; !shows(rank)) pane.grouper->leave(rank);
    }
  }
  pane.screen->on_change([this, &pane] { count_taken(pane); });
  pane.screen->on_error([this](int number, const Error& error) { complain(number, error); });
}

void JobOutput::complain(int number, const Error& error) {
  if ((number == EPIPE || number == ECONNRESET) && on_closed_) return loop_.post(on_closed_);
  log::warn("output", "{}; output of the ranks to this stream is lost; the job continues",
            error.message);
}

TagFields JobOutput::fields_of(Rank rank, Stream stream) const {
  const auto& label = ranks_[rank.index()].label;
  return {.rank = rank,
          .ranks = {},
          .local_rank = label.local_rank,
          .size = static_cast<int>(ranks_.size()),
          .host = label.host,
          .job = options_.job_id,
          .stream = stream};
}

std::string JobOutput::paint(const Pane& pane, Rank rank, std::string tag) const {
  if (!pane.colours || tag.empty()) return tag;
  return fmt::format("{}{}{}", colour_of(rank), tag, kColourOff);
}

void JobOutput::render_tags(Rank rank, Stream stream) {
  auto& state = ranks_[rank.index()].streams[index(stream)];
  if (!state.screen_tag.empty() && !options_.tag.timed() && !options_.timestamps) return;
  auto fields = fields_of(rank, stream);
  const auto tag = options_.tag.render(fields, now_);
  state.file_tag = time_front_ + (options_.tagged_files ? tag : "");
  state.screen_tag = paint(pane(stream), rank, time_front_ + tag);
  fields.ranks = "*";
  state.fold_key = options_.tag.render(fields, {});
}

void JobOutput::add(Rank rank, Stream stream, const LinePiece& piece) {
  auto& state = ranks_[rank.index()];
  auto& lines = state.streams[index(stream)];
  state.tail.add(piece);
  if (files_) lines.file_mixer.add(file_text_, 0, lines.file_tag, piece);
  if (!shows(rank)) return;
  auto& target = pane(stream);
  if (target.grouper) {
    target.grouper->add(rank, stream, piece, lines.fold_key, {.front = time_front_, .time = now_},
                        SteadyClock::instance().now());
  } else {
    const int writer = 2 * rank.value() + static_cast<int>(index(stream));
    target.mixer.add(target.screen->buffer(), writer, lines.screen_tag, piece);
  }
}

void JobOutput::put_row(Pane& pane, const LineGrouper::Row& row) {
  auto ranks = row.ranks;
  std::sort(ranks.begin(), ranks.end());
  const Rank first = row.ranks.front();
  const auto text = list_ranks(ranks);
  auto fields = fields_of(first, row.stream);
  fields.ranks = text;
  auto tag = row.stamp.front + options_.tag.render(fields, row.stamp.time);
  // A row of several ranks has no colour.
  if (ranks.size() == 1) tag = paint(pane, first, std::move(tag));
  const int writer = 2 * first.value() + static_cast<int>(index(row.stream));
  pane.mixer.add(pane.screen->buffer(), writer, tag,
                 {.body = row.body, .end = row.end, .continues = row.continues});
}

/// Writes the rows that are due, or all rows, and sets the timer for the next.
void JobOutput::put_rows(Pane& pane, Rows which) {
  if (!pane.grouper) return;
  const auto now = SteadyClock::instance().now();
  while (auto row = which == Rows::all ? pane.grouper->pop() : pane.grouper->next(now))
    put_row(pane, *row);
  const auto due = pane.grouper->due();
  if (!due) {
    pane.row_timer.reset();
  } else if (!pane.row_timer) {
    pane.row_timer = loop_.after(*due - now, [this, &pane] {
      pane.row_timer.reset();
      put_rows(pane, Rows::due);
      after_write(pane);
    });
  }
}

void JobOutput::take(Rank rank, Stream stream, std::string_view bytes) {
  if (rank.value() < 0 || rank.index() >= ranks_.size()) return;
  if (options_.timestamps || options_.tag.timed()) now_ = time_text(TimeStyle::iso);
  if (options_.timestamps) {
    time_front_ =
        options_.time_style == TimeStyle::iso ? now_ + " " : time_text(options_.time_style);
  }
  render_tags(rank, stream);
  auto& lines = ranks_[rank.index()].streams[index(stream)];
  lines.lines.feed(bytes, [&](const LinePiece& piece) { add(rank, stream, piece); });
  write_file(rank, stream);
  // A question to the user has no line end. With one rank, no other line can come in between.
  if (ranks_.size() == 1 && lines.lines.pending())
    half_line_ = loop_.after(kHalfLine, [this] { show_half_lines(); });
  auto& target = pane(stream);
  put_rows(target, Rows::due);
  target.deliveries.add(rank, bytes.size(), target.screen->end());
  after_write(target);
}

void JobOutput::show_half_lines() {
  const Rank lone{0};
  for (const auto stream : {Stream::out, Stream::err}) {
    ranks_.front().streams[index(stream)].lines.finish(
        [&](const LinePiece& piece) { add(lone, stream, piece); });
    write_file(lone, stream);
    put_rows(pane(stream), Rows::due);
    after_write(pane(stream));
  }
}

void JobOutput::write_file(Rank rank, Stream stream) {
  if (files_ && !file_text_.empty()) files_->write(rank, stream, file_text_);
  file_text_.clear();
}

void JobOutput::finish(Rank rank) {
  if (rank.value() < 0 || rank.index() >= ranks_.size()) return;
  for (const auto stream : {Stream::out, Stream::err}) {
    auto& lines = ranks_[rank.index()].streams[index(stream)];
    lines.lines.finish([&](const LinePiece& piece) { add(rank, stream, piece); });
    write_file(rank, stream);
  }
  if (files_ && gets_more_ranks_) files_->close_rank(rank);
  for (auto& pane : panes_) {
    if (pane.grouper) pane.grouper->leave(rank);
    put_rows(pane, Rows::due);
    after_write(pane);
  }
}

void JobOutput::say(std::string_view text) {
  for (auto& pane : panes_) put_rows(pane, Rows::all);
  auto& target = pane(Stream::err);
  target.mixer.end_row(target.screen->buffer());
  target.screen->buffer() += text;
  for (auto& pane : panes_) after_write(pane);
}

void JobOutput::after_write(Pane& pane) {
  pane.screen->flush();
  count_taken(pane);
}

std::size_t JobOutput::backlog() const {
  std::size_t bytes = 0;
  for (const auto& pane : panes_) bytes += pane.screen->backlog();
  return bytes;
}

void JobOutput::count_taken(Pane& pane) {
  pane.deliveries.advance(pane.screen->done(), [this](Rank rank, std::size_t bytes) {
    auto& taken = ranks_[rank.index()].taken;
    taken += bytes;
    if (taken >= grain_ && on_taken_) on_taken_(rank, std::exchange(taken, 0));
  });
  if (on_drained_ && backlog() == 0) loop_.post(std::exchange(on_drained_, {}));
}

void JobOutput::when_drained(Task task) {
  for (auto& pane : panes_) {
    put_rows(pane, Rows::all);
    after_write(pane);
  }
  on_drained_ = std::move(task);
  count_taken(panes_.front());
}

}  // namespace horo::launcher
