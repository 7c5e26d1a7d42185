// SPDX-License-Identifier: Apache-2.0
// One process set's agreement on one host, in shared memory: members mark tensors, the mark that
// completes a tensor makes it ready, the holder of the combiner word puts ready tensors into
// entries of one log, and every member runs the log in order. Sets share nothing but the host's
// bells and arenas, so no set waits for another. No part of a board sleeps, polls or reads a clock.
//
// The protocol, with its memory orders and the reasons for them, is docs/design/board.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "runtime/board/cutter.hpp"
#include "runtime/board/directory/directory.hpp"
#include "runtime/board/entry_log.hpp"
#include "runtime/board/leader_port.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/board/ready_list.hpp"
#include "runtime/board/stall_view.hpp"
#include "runtime/board/start_places.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/set_bells.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Where the members of a board's set run.
enum class BoardSpan : std::uint8_t {
  one_host,       ///< All members are on this host.
  several_hosts,  ///< Some are on other hosts: nobody on this host makes entries by itself.
};

/// Holds the parts of a board: each part says what it owns. Callers take the part that they need.
/// Thread: any; each part says what differs.
class Board {
 public:
  /// As SetRegion::attach. With several hosts the host's first rank may attach without being a
  /// member.
  static Result<std::unique_ptr<Board>> attach(HostMemory& host, std::size_t region,
                                               Members members,
                                               BoardSpan span = BoardSpan::one_host);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  const SetRegion& region() const { return *region_; }

  const SetBells& bells() const { return bells_; }

  Directory& directory() { return directory_; }

  const Directory& directory() const { return directory_; }

  Marks& marks() { return marks_; }

  const Marks& marks() const { return marks_; }

  ReadyList& ready() { return ready_; }

  const ReadyList& ready() const { return ready_; }

  EntryLog& log() { return log_; }

  const EntryLog& log() const { return log_; }

  const StallView& stalls() const { return stalls_; }

  const StartPlaces& places() const { return places_; }

  /// Null where the set has members on other hosts.
  Cutter* cutter() { return cutter_ ? &*cutter_ : nullptr; }

  /// Null where all members are on this host.
  LeaderPort* leader_port() { return leader_port_ ? &*leader_port_ : nullptr; }

  /// The tuning that this rank uses in the set.
  const AppliedTuning& tuning() const { return tuning_; }

  /// The rank has reached a log entry that changes its tuning. Thread: the holder of the progress
  /// token.
  void apply(const Tuning& tuning) { tuning_.apply(tuning); }

  /// Sets the number that the timeline uses for the set (timeline/record.hpp). Call it before the
  /// board is used.
  void record_as(std::uint16_t set) { recorded_set_ = set; }

  std::uint16_t recorded_set() const { return recorded_set_; }

 private:
  Board(std::unique_ptr<SetRegion> region, BoardSpan span);

  const std::unique_ptr<SetRegion> region_;
  const SetBells bells_;
  Directory directory_;
  ReadyList ready_;
  Marks marks_;
  EntryLog log_;
  StartPlaces places_;
  StallView stalls_;
  AppliedTuning tuning_;
  std::optional<Cutter> cutter_;
  std::optional<LeaderPort> leader_port_;
  std::uint16_t recorded_set_ = 0;
};

}  // namespace horo::runtime
