// SPDX-License-Identifier: Apache-2.0
// Trainings that were never run: what their ranks would have recorded, with one thing that makes
// them slow.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "timeline/analysis/model.hpp"
#include "timeline/record/rank_source.hpp"
#include "timeline/record/record.hpp"

namespace horo::testing {

enum class Fault : std::uint8_t {
  none,
  straggler,
  slow_link,
  slow_packing,
  small_buckets,
  exposed
};

std::string_view name(Fault fault);  ///< The kind of the verdict that names the fault.

/// One rank's records, sorted by time. A tick is a nanosecond.
class PlantedRank final : public timeline::RankSource {
 public:
  PlantedRank(int rank, int size, int host, std::int64_t clock_ahead);

  const timeline::RankIdentity& identity() const override { return identity_; }

  std::int64_t wall_ns(std::uint64_t ticks) const override {
    return static_cast<std::int64_t>(ticks) + clock_ahead_;
  }

  void shift_clock(std::int64_t ns) { clock_ahead_ += ns; }

  std::int64_t taken_ns() const override { return 0; }

  const timeline::NameSlot* name_of(std::uint16_t, std::uint32_t) const override { return nullptr; }

  std::vector<timeline::Record> records;

 private:
  timeline::RankIdentity identity_;
  std::int64_t clock_ahead_;
};

struct PlantedJob {
  std::vector<std::unique_ptr<PlantedRank>> ranks;
  int culprit = -1;     ///< The straggler.
  double delay_ns = 0;  ///< The straggler's delay in every step.
};

/// Makes a training with this fault. The same seed gives the same training.
PlantedJob plant(Fault fault, std::uint64_t seed);

/// Passes all records of the ranks to `sink`, as the reader of their files does.
void read_planted(PlantedJob job, timeline::OperationSink& sink);

}  // namespace horo::testing
