// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/worker_env.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/ranks/rank_output_window.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// One slot of the agent's board, and the rank that has it.
struct RankEntry {
  /// ended: the slot is free; no rank has had it yet, or the last one has ended. killed: by
  /// SIGKILL.
  enum class Life : std::uint8_t { ended, waiting, running, killed };

  RankEntry(LocalRank its_slot, std::size_t window_size) : slot(its_slot), window(window_size) {}

  bool is_alive() const { return life == Life::running || life == Life::killed; }

  const LocalRank slot;
  Rank number{-1};  ///< See number_of().
  WorkerIdentity identity;
  int part = 0;  ///< The part of the host that it gets: see RankCommands::of.
  RankOutputWindow window;
  Life life = Life::ended;
  std::unique_ptr<ProcessGroup> group;  ///< Null before the start.
  TimePoint started{};
};

/// The ranks of one host by their slots, and the order in which they start. Pointers to entries
/// stay valid. Thread: owner.
class RankEntries {
 public:
  explicit RankEntries(const AgentSpec& spec);
  RankEntries(const RankEntries&) = delete;
  RankEntries& operator=(const RankEntries&) = delete;

  /// Puts a rank into the first free slot, where it waits for its start. The slot is written into
  /// the identity of a worker. Fails: protocol (no slot is free, or there is a rank of that
  /// number).
  Result<RankEntry*> add(const WorkerIdentity& identity);

  bool any_waiting() const { return !waiting_.empty(); }

  /// The rank that has waited longest leaves the queue. One must be waiting.
  RankEntry& take_next();
  /// The rank is not to be started: its slot is free. False: it does not wait.
  bool cancel(Rank number);

  std::vector<RankEntry*> living();
  /// The rank that waits, runs or was killed; null: there is none of that number.
  RankEntry* find(Rank number);

  std::vector<RankEntry>& all() { return entries_; }

 private:
  const std::size_t window_;  ///< The size of each rank's output window.
  const bool elastic_;
  std::vector<RankEntry> entries_;  ///< By slot.
  std::deque<RankEntry*> waiting_;
};

}  // namespace horo::launcher
