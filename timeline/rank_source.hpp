// SPDX-License-Identifier: Apache-2.0
// Where a rank's records come from: a file, or the memory of a job that runs.
#pragma once

#include <cstdint>

#include "timeline/region.hpp"

namespace horo::timeline {

/// What those who take records ask of the rank that wrote them. Thread: owner.
class RankSource {
 public:
  RankSource() = default;
  RankSource(const RankSource&) = delete;
  RankSource& operator=(const RankSource&) = delete;
  virtual ~RankSource() = default;

  virtual const Identity& identity() const = 0;
  virtual std::int64_t wall_ns(std::uint64_t ticks) const = 0;

  /// When the records were taken, as wall_ns; 0: they still come.
  virtual std::int64_t taken_ns() const { return 0; }

  /// Null: not in the table. Good until the next call.
  virtual const NameSlot* name_of(std::uint16_t set, std::uint32_t id) const = 0;

  int rank() const { return identity().rank; }
};

}  // namespace horo::timeline
