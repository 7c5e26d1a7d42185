// SPDX-License-Identifier: Apache-2.0
// The order in which entries on device memory start. Operations that wait for other ranks on the
// device itself have to start in one order on all ranks, whatever their sets: two ranks that start
// the operations of two sets in different orders can wait for each other without end. So each such
// entry has a place among those of all sets of the host, and every rank starts them by their
// places. docs/decisions/0025-one-order-of-starts.md has the reasons.
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/board/entry_log.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// One set's side. Entries in which ranks that have joined take part have no place. The places of a
/// set ascend with its log, and a place that is taken later is larger, whatever the set.
class StartPlaces {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  StartPlaces(const SetRegion& region, const EntryLog& log) : region_(region), log_(log) {}

  /// The place of an entry that will be appended. Thread: the one that appends.
  std::uint64_t take();

  /// An entry that has a place was appended. `next`: the place of the first entry that has one and
  /// was not; 0: there is none. Thread: the one that appends.
  void appended(std::uint64_t next);

  /// No entry of the set that this rank has not done has a place from `after` + 1 up to the result,
  /// and none will have: kNone if that holds for all places that have been taken. Thread: the
  /// holder of the progress token.
  std::uint64_t first_after(std::uint64_t after) const;

 private:
  const SetRegion& region_;
  const EntryLog& log_;
};

}  // namespace horo::runtime
