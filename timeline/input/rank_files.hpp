// SPDX-License-Identifier: Apache-2.0
// Merges the timelines of several ranks into one stream in order of time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "timeline/input/timeline_input.hpp"
#include "timeline/record/rank_source.hpp"
#include "timeline/record/timeline_file.hpp"

namespace horo::timeline {

/// One rank's file. Thread: owner.
class RankFile final : public RankSource {
 public:
  /// Fails: protocol (the beginning of the file is damaged), version_mismatch, io.
  static Result<std::unique_ptr<RankFile>> open(std::unique_ptr<TimelineInput> input);

  const FileAbout& about() const { return about_; }

  const RankIdentity& identity() const override { return about_.identity; }

  /// The next record; null at the end and at damage.
  const Record* peek();

  void take() { records_.pop_front(); }

  std::int64_t wall_ns(std::uint64_t ticks) const override {
    return clock_.wall_ns(ticks) + shift_ns_;
  }

  std::int64_t taken_ns() const override {
    return wall_ns(static_cast<std::uint64_t>(about_.last.ticks));
  }

  /// Adds this to its host's clock.
  void shift_clock(std::int64_t ns) { shift_ns_ = ns; }

  double ns_per_tick() const { return clock_.ns_per_tick(); }

  const NameSlot* name_of(std::uint16_t set, std::uint32_t id) const override;

  /// Called after the end: says what is missing; empty where the file is complete.
  std::string missing() const;

 private:
  explicit RankFile(std::unique_ptr<TimelineInput> input);
  bool read_on();
  void keep(Record record);

  std::unique_ptr<TimelineInput> input_;
  FileParser parser_;
  FileAbout about_;
  TickClock clock_;
  std::int64_t shift_ns_ = 0;
  std::map<std::pair<std::uint16_t, std::uint32_t>, NameSlot> names_;
  std::deque<Record> records_;
  std::optional<std::uint64_t> first_;  ///< Ticks of the first record.
  std::vector<char> bytes_;             ///< Input buffer.
  std::string damage_;
  bool known_ = false;
  bool over_ = false;
};

/// Calls `use` with every record of all files, in order of time.
void merge_by_time(const std::vector<std::unique_ptr<RankFile>>& files,
                   const std::function<void(RankFile&, const Record&)>& use);

}  // namespace horo::timeline
