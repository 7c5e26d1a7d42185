// SPDX-License-Identifier: Apache-2.0
// Progress over all process sets of a rank. Each set has a board and an engine of its own, so a
// slow set holds up no other, and overlapping sets cannot wait for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/backends/device/device_options.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/set_bells.hpp"
#include "runtime/sets/job_hosts.hpp"
#include "runtime/sets/rank_loss.hpp"
#include "runtime/sets/set_table.hpp"

namespace horo::runtime {

/// Owns the making, the progress and the end of this rank's sets. Thread: the holder of the
/// progress token, except for what says otherwise.
class ProcessSets {
 public:
  /// All outlive this. `release_timeout`: as for RankLoss.
  ProcessSets(HostMemory& host, OperationTable& operations, const Clock& clock,
              Duration release_timeout)
      : host_(host), operations_(operations), loss_(host, clock, release_timeout) {}

  /// The job has other hosts. Before the first set; `hosts` outlives the sets.
  void connect(JobHosts& hosts) { hosts_ = &hosts; }

  /// Sets may have tensors in device memory. Before the first set; `devices` outlives the sets.
  void use(const DeviceOptions& devices) { devices_ = &devices; }

  /// Thread: any.
  const SetTable& table() const { return table_; }

  /// As SetTable::find. Thread: any.
  ProcessSet* find(SetId id) const { return table_.find(id); }

  RankLoss& loss() { return loss_; }

  const RankLoss& loss() const { return loss_; }

  /// A set that is being added.
  class NewSet;

  /// Makes a set with the lowest free number, the same on all ranks that add and remove in the same
  /// order. connect() and finish() follow; one set at a time. Blocks: until the memory is there.
  /// Fails: out_of_memory, peer_lost, resource_exhausted.
  Result<NewSet> begin(std::vector<Rank> ranks);

  /// Connects the members on several hosts. Thread: any, so that the other sets go on. Blocks:
  /// until all members have come. Fails: as SetConnector::connect.
  Status connect(NewSet& made);

  /// Adds the set. `connected`: how connect() ended. Fails: with that.
  Result<SetId> finish(NewSet made, Status connected);

  /// The three steps. Fails: as they do.
  Result<SetId> add(std::vector<Rank> ranks);

  /// Forgets a set that has no operation in flight any more and that no other thread uses.
  void remove(SetId id);

  /// All sets, later ones too, begin with a wake delay of kLateWakeNs. Before the first submission.
  void wake_late();

  /// Does what can be done now, a bounded piece of each set; true when anything moved.
  bool progress();

  /// Entries have begun and are not done, in any set.
  bool active() const;

  /// Bytes of those entries, in all sets.
  std::uint64_t bytes_in_flight() const;

  /// An active set's backend has no completion events.
  bool polls() const;

  /// A look would find something to do or to finish. Thread: any.
  bool has_news() const;

  /// As has_news(), but without entries that nobody needs this rank to run soon. Thread: any.
  bool is_needed() const;

  /// A tensor is ready and in no entry yet, in any set. Thread: any.
  bool has_ready() const;

  /// The shortest cycle time of a set in which a tensor is ready: it is put into an entry then.
  /// Duration::max() where none waits for others. Thread: any.
  Duration cycle_time() const;

  /// A tensor that is ready could be put into an entry now. Thread: any.
  bool can_cut() const;

  /// Takes back what is not agreed, in all sets. True when no operation of this rank is left and,
  /// on the leader, nothing more comes from other hosts.
  bool withdraw();

  /// Wakes members in all sets because of which ready tensors find the log full, this rank too if
  /// nobody drives it. For::shares: also those whose share of this rank's entries is missing.
  /// Returns how many. Thread: any; For::shares: the holder of the progress token.
  int wake_laggards(SetBells::For reason) const;

  /// Sums over all sets since the beginning.
  struct Totals {
    std::uint64_t tensors = 0, entries = 0, bytes = 0, fused_bytes = 0, direct_bytes = 0,
                  rounded_bytes = 0;

    void add(const EngineCounters& counters);
  };

  /// Thread: any.
  Totals totals() const;

 private:
  Status populate(NewSet& made);
  Status populate_spanning(NewSet& made, bool member);
  std::unique_ptr<Backend> with_devices(std::unique_ptr<Backend> host, const ProcessSet& set) const;
  void discard(const ProcessSet& set);
  void begin_recording(ProcessSet& set) const;
  Members members_here(const ProcessSet& set) const;
  bool end_operations();
  void call_leader();
  void note_breakdowns();
  /// A set asks for this rank, as `asked` tells of its engine.
  template <typename Asked>
  bool any_set(Asked asked) const;

  HostMemory& host_;
  OperationTable& operations_;
  const DeviceOptions* devices_ = nullptr;  ///< Null: all tensors are in host memory.
  JobHosts* hosts_ = nullptr;               ///< Null: the job has one host.
  RankLoss loss_;
  SetTable table_;
  std::uint32_t added_ = 0;  ///< Sets, ever.
  bool wakes_late_ = false;
  Totals removed_;  ///< Totals of the sets that have been removed.
};

class ProcessSets::NewSet {
  friend class ProcessSets;

  std::unique_ptr<ProcessSet> set_;
  Members members_;           ///< On this host.
  std::uint32_t number_ = 0;  ///< How many sets were ever added.
  bool connects_ = false;     ///< This rank is a member, and others are on other hosts.
  std::unique_ptr<Backend> backend_;
};

}  // namespace horo::runtime
