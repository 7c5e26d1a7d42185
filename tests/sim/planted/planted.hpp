// SPDX-License-Identifier: Apache-2.0
// Trainings that were never run: what their ranks would have recorded, with one thing that makes
// them slow.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "apps/timeline_view/rank_source.hpp"
#include "timeline/record.hpp"

namespace horo::testing {

enum class Fault : std::uint8_t {
  none,
  straggler,
  slow_link,
  slow_packing,
  small_buckets,
  exposed
};

std::string_view name(Fault fault);  ///< As the verdict's kind is called.

/// One rank's records, in the order of time. A tick is a nanosecond.
class PlantedRank final : public apps::RankSource {
 public:
  PlantedRank(int rank, int size, int host, std::int64_t clock_ahead);

  const timeline::Identity& identity() const override { return identity_; }

  std::int64_t wall_ns(std::uint64_t ticks) const override {
    return static_cast<std::int64_t>(ticks) + clock_ahead_;
  }

  void shift_clock(std::int64_t ns) { clock_ahead_ += ns; }

  const timeline::NameSlot* name_of(std::uint16_t, std::uint32_t) const override { return nullptr; }

  std::vector<timeline::Record> records;

 private:
  timeline::Identity identity_;
  std::int64_t clock_ahead_;
};

struct PlantedJob {
  std::vector<std::unique_ptr<PlantedRank>> ranks;
  int culprit = -1;     ///< The straggler.
  double delay_ns = 0;  ///< By which it is late at every step.
};

/// The same for the same seed.
PlantedJob plant(Fault fault, std::uint64_t seed);

/// Gives all that the ranks recorded to `sink`, as a reader of their files does.
void read_planted(PlantedJob job, apps::Sink& sink);

}  // namespace horo::testing
