// SPDX-License-Identifier: Apache-2.0
// Puts the ready tensors of a set whose members are all on this host into log entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/board/directory/directory.hpp"
#include "runtime/board/entry_log.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/board/ready_list.hpp"
#include "runtime/board/start_places.hpp"
#include "runtime/host/set_region.hpp"
#include "runtime/tensor/fusion_plan.hpp"

namespace horo::runtime {

/// Owns the pending tensors of the region while this rank holds the combiner word. Thread: any; the
/// combiner word lets one rank in at a time.
class Cutter {
 public:
  Cutter(const SetRegion& region, const Directory& directory, Marks& marks, ReadyList& ready,
         EntryLog& log, StartPlaces& places, const AppliedTuning& tuning);

  /// Appends the entries that can be made now; true when there was one (wake the sleepers then).
  /// `ticks`: the time now, of timeline/record/ticks.hpp; needed only with a cycle time.
  bool cut(std::uint64_t ticks);

  /// Appends an entry at which all members change their tuning (wake the sleepers then), and cuts.
  /// False when the log is full or another rank appends right now: try again later.
  bool change_tuning(const Tuning& tuning, std::uint64_t ticks);

  /// Ready tensors could be put into an entry now, and no rank is doing that.
  bool can_cut() const {
    return ready_.has_ready() && log_.has_room() &&
           region_.body().combiner.load(std::memory_order_seq_cst) == 0;
  }

 private:
  bool lingers(std::uint64_t ticks) const;
  bool try_combiner();
  bool resolve(TensorId id, bool changed);
  PendingSlot inspect(TensorId id);
  DataPath path_of(std::uint64_t counted, bool partial, MemoryKind memory) const;
  void take_ready();
  std::uint32_t pending_count() const;
  PendingSlot pending(std::size_t at) const;
  void cut_one();
  std::size_t most_tensors(const PendingSlot& first) const;
  EntryLog::Need need_of(const LogSlot& entry, TensorId first) const;
  void plan(std::size_t most);
  void write_words(const PendingSlot& first);
  void remove_taken();

  const SetRegion& region_;
  const Directory& directory_;
  Marks& marks_;
  ReadyList& ready_;
  EntryLog& log_;
  StartPlaces& places_;
  const AppliedTuning& tuning_;

  // Used while this rank holds the combiner word.
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> taken_;  ///< Positions of the next entry's tensors, ascending.
  std::vector<std::uint64_t> words_;
};

}  // namespace horo::runtime
