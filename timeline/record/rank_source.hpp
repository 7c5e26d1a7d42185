// SPDX-License-Identifier: Apache-2.0
// The origin of a rank's records: a file, or the memory of a running job.
#pragma once

#include <cstdint>

#include "timeline/record/region.hpp"

namespace horo::timeline {

/// Describes the rank that wrote some records, to the code that reads them. Thread: owner.
class RankSource {
 public:
  RankSource() = default;
  RankSource(const RankSource&) = delete;
  RankSource& operator=(const RankSource&) = delete;
  virtual ~RankSource() = default;

  virtual const RankIdentity& identity() const = 0;
  virtual std::int64_t wall_ns(std::uint64_t ticks) const = 0;

  /// The time at which the records were saved, as wall_ns; 0: the rank still records.
  virtual std::int64_t taken_ns() const = 0;

  /// Null where the name table lacks the tensor. Valid until the next call.
  virtual const NameSlot* name_of(std::uint16_t set, std::uint32_t id) const = 0;

  int rank() const { return identity().rank; }
};

}  // namespace horo::timeline
