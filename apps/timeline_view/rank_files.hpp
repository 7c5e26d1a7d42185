// SPDX-License-Identifier: Apache-2.0
// The timelines of several ranks as one stream in the order of time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/timeline_view/input.hpp"
#include "apps/timeline_view/rank_source.hpp"
#include "timeline/file.hpp"

namespace horo::apps {

/// One rank's file. Thread: owner.
class RankFile final : public RankSource {
 public:
  /// Fails: protocol (not even its beginning can be read), version_mismatch, io.
  static Result<std::unique_ptr<RankFile>> open(std::unique_ptr<Input> input);

  const timeline::FileAbout& about() const { return about_; }

  const timeline::Identity& identity() const override { return about_.identity; }

  /// The next record; null at the end, or where damage ends it.
  const timeline::Record* peek();

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

  const timeline::NameSlot* name_of(std::uint16_t set, std::uint32_t id) const override;

  /// After the end: what is not there; empty: nothing.
  std::string missing() const;

 private:
  explicit RankFile(std::unique_ptr<Input> input);
  bool read_on();
  void keep(timeline::Record record);

  std::unique_ptr<Input> input_;
  timeline::FileParser parser_;
  timeline::FileAbout about_;
  timeline::TickClock clock_;
  std::int64_t shift_ns_ = 0;
  std::map<std::pair<std::uint16_t, std::uint32_t>, timeline::NameSlot> names_;
  std::deque<timeline::Record> records_;
  std::optional<std::uint64_t> first_;  ///< Ticks of the first record.
  std::vector<char> bytes_;             ///< That were read last.
  std::string damage_;
  bool known_ = false;
  bool over_ = false;
};

/// Calls `use` with every record of all files in the order of time.
void merge(const std::vector<std::unique_ptr<RankFile>>& files,
           const std::function<void(RankFile&, const timeline::Record&)>& use);

}  // namespace horo::apps
