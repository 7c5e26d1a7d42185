// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output.hpp"

#include <array>
#include <ctime>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"

namespace horo::launcher {

namespace {

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

Output::Output(Loop& loop, OutputOptions options, std::vector<RankLabel> ranks,
               std::optional<LogFiles> files)
    : loop_(loop),
      options_(std::move(options)),
      ranks_(ranks.size()),
      files_(std::move(files)),
      grain_(output_window(ranks.size()) / 4) {
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks_[r].label = std::move(ranks[r]);
  panes_.reserve(2);  // What waits for a pane keeps a reference.
  const bool shared = same_file(options_.out_fd, options_.err_fd);
  for (const int fd : {options_.out_fd, options_.err_fd}) {
    if (shared && !panes_.empty()) break;
    auto& pane = panes_.emplace_back();
    pane.screen = std::make_unique<Screen>(loop_, fd);
    pane.colours = options_.colours && isatty(fd) == 1;
    pane.screen->on_change([this, &pane] { count_taken(pane); });
    pane.screen->on_error([](const Error& error) {
      log::warn("output", "{}; what the ranks print there is lost, the job goes on", error.message);
    });
  }
  if (files_) {
    files_->on_error([](const Error& error) {
      log::warn("output", "{}; what the ranks print may be missing in the files, the job goes on",
                error.message);
    });
  }
}

void Output::render_tags(Rank rank, Stream stream) {
  auto& state = ranks_[rank.index()].streams[index(stream)];
  if (!state.screen_tag.empty() && !options_.tag.timed() && !options_.timestamps) return;
  const auto& label = ranks_[rank.index()].label;
  auto tag = options_.tag.render({.rank = rank,
                                  .local_rank = label.local_rank,
                                  .size = static_cast<int>(ranks_.size()),
                                  .host = label.host,
                                  .job = options_.job_id,
                                  .stream = stream},
                                 now_);
  state.file_tag = time_front_ + (options_.tagged_files ? tag : "");
  tag.insert(0, time_front_);
  state.screen_tag = pane(stream).colours && !tag.empty()
                         ? fmt::format("{}{}{}", colour_of(rank), tag, kColourOff)
                         : tag;
}

void Output::add(Rank rank, Stream stream, const LinePiece& piece) {
  auto& state = ranks_[rank.index()];
  auto& lines = state.streams[index(stream)];
  const int writer = 2 * rank.value() + static_cast<int>(index(stream));
  auto& target = pane(stream);
  target.mixer.add(target.screen->buffer(), writer, lines.screen_tag, piece);
  state.tail.add(piece);
  if (files_) lines.file_mixer.add(file_text_, 0, lines.file_tag, piece);
}

void Output::take(Rank rank, Stream stream, std::string_view bytes) {
  if (rank.value() < 0 || rank.index() >= ranks_.size()) return;
  if (options_.timestamps || options_.tag.timed()) now_ = time_text(TimeStyle::iso);
  if (options_.timestamps) {
    time_front_ =
        options_.time_style == TimeStyle::iso ? now_ + " " : time_text(options_.time_style);
  }
  render_tags(rank, stream);
  auto& lines = ranks_[rank.index()].streams[index(stream)];
  lines.lines.feed(bytes, [&](const LinePiece& piece) { add(rank, stream, piece); });
  if (files_ && !file_text_.empty()) {
    files_->write(rank, stream, file_text_);
    file_text_.clear();
  }
  auto& target = pane(stream);
  target.passage.add(rank, bytes.size(), target.screen->end());
  after_write(target);
}

void Output::finish(Rank rank) {
  if (rank.value() < 0 || rank.index() >= ranks_.size()) return;
  for (const auto stream : {Stream::out, Stream::err}) {
    auto& lines = ranks_[rank.index()].streams[index(stream)];
    lines.lines.finish([&](const LinePiece& piece) { add(rank, stream, piece); });
    if (files_ && !file_text_.empty()) files_->write(rank, stream, file_text_);
    file_text_.clear();
    after_write(pane(stream));
  }
}

void Output::say(std::string_view text) {
  auto& target = pane(Stream::err);
  target.mixer.end_row(target.screen->buffer());
  target.screen->buffer() += text;
  after_write(target);
}

void Output::after_write(Pane& pane) {
  pane.screen->flush();
  count_taken(pane);
}

std::size_t Output::backlog() const {
  std::size_t bytes = 0;
  for (const auto& pane : panes_) bytes += pane.screen->backlog();
  return bytes;
}

void Output::count_taken(Pane& pane) {
  pane.passage.advance(pane.screen->done(), [this](Rank rank, std::size_t bytes) {
    auto& taken = ranks_[rank.index()].taken;
    taken += bytes;
    if (taken >= grain_ && on_taken_) on_taken_(rank, std::exchange(taken, 0));
  });
  if (on_drained_ && backlog() == 0) loop_.post(std::exchange(on_drained_, {}));
}

void Output::when_drained(Task task) {
  on_drained_ = std::move(task);
  count_taken(panes_.front());
}

}  // namespace horo::launcher
