// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/rank_files.hpp"

#include <algorithm>
#include <array>
#include <queue>

namespace horo::timeline {

RankFile::RankFile(std::unique_ptr<TimelineInput> input)
    : input_(std::move(input)),
      parser_({.about =
                   [this](const FileAbout& about) {
                     about_ = about;
                     clock_ = TickClock(about.first, about.last);
                     known_ = true;
                   },
               .name =
                   [this](const NameSlot& slot) {
                     names_[{slot.set, slot.id}] = slot;
                   },
               .record = [this](const Record& record) { keep(record); }}) {}

/// Keeps a record. A wait may claim to have begun before the first record; it is shortened then.
void RankFile::keep(Record record) {
  if (!first_) first_ = record.ticks;
  if (record.kind == RecordKind::wait)
    record.x = std::min(std::max(record.x, *first_), record.ticks);
  records_.push_back(record);
}

Result<std::unique_ptr<RankFile>> RankFile::open(std::unique_ptr<TimelineInput> input) {
  std::unique_ptr<RankFile> file(new RankFile(std::move(input)));
  std::array<char, 1> one{};
  // A wrong version or format is an error here; later damage becomes a warning with the figures.
  while (!file->known_) {
    HORO_TRY(const auto got, file->input_->read(one.data(), one.size()));
    if (got == 0) {
      return fail(Errc::protocol, "'{}': {}", file->input_->path(), file->parser_.missing());
    }
    if (auto fed = file->parser_.feed({one.data(), got}); !fed)
      return Failure(std::move(fed).error().context(file->input_->path()));
  }
  return file;
}

bool RankFile::read_on() {
  constexpr std::size_t kBytes = std::size_t{128} << 10U;
  bytes_.resize(kBytes);
  const auto got = input_->read(bytes_.data(), bytes_.size());
  if (!got) {
    damage_ = got.error().message;
    return false;
  }
  if (*got == 0) return false;
  if (auto fed = parser_.feed({bytes_.data(), *got}); !fed) {
    damage_ = fed.error().message;
    return false;
  }
  return true;
}

const Record* RankFile::peek() {
  while (records_.empty() && !over_) over_ = !read_on();
  return records_.empty() ? nullptr : &records_.front();
}

const NameSlot* RankFile::name_of(std::uint16_t set, std::uint32_t id) const {
  const auto found = names_.find({set, id});
  return found == names_.end() ? nullptr : &found->second;
}

std::string RankFile::missing() const {
  const auto what = damage_.empty() ? parser_.missing() : damage_;
  return what.empty() ? what : fmt::format("{}: {}", input_->path(), what);
}

void merge_by_time(const std::vector<std::unique_ptr<RankFile>>& files,
                   const std::function<void(RankFile&, const Record&)>& use) {
  struct Next {
    std::int64_t ns;
    std::size_t file;

    bool operator>(const Next& other) const {
      return ns != other.ns ? ns > other.ns : file > other.file;
    }
  };

  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  const auto push = [&](std::size_t i) {
    if (const auto* record = files[i]->peek(); record != nullptr)
      queue.push({files[i]->wall_ns(record->ticks), i});
  };
  for (std::size_t i = 0; i < files.size(); ++i) push(i);
  while (!queue.empty()) {
    const auto i = queue.top().file;
    queue.pop();
    auto& file = *files[i];
    // This file goes on as long as its next record is the earliest.
    for (const auto* record = file.peek(); record != nullptr; record = file.peek()) {
      const Next next{file.wall_ns(record->ticks), i};
      if (!queue.empty() && next > queue.top()) {
        queue.push(next);
        break;
      }
      use(file, *record);
      file.take();
    }
  }
}

}  // namespace horo::timeline
