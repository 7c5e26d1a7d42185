// SPDX-License-Identifier: Apache-2.0
// Connects the members of a process set that run on several hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"
#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/backends/hierarchical/hierarchical.hpp"
#include "runtime/backends/hierarchical/hierarchy.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/set_region.hpp"
#include "runtime/sets/host_map.hpp"

namespace horo::runtime {

/// The user's settings for backends between hosts.
struct ConnectOptions {
  Duration start_timeout = std::chrono::seconds(30);  ///< For each set but the job's own.
  CpuOperations operations = CpuOperations::automatic;
  std::string gloo_interface;
  Duration gloo_timeout = std::chrono::seconds(30);
  bool mpi_threads = true;
  bool deterministic = false;  ///< The same bits on every run, whatever is fused.
  kv::Encryption encryption = kv::Encryption::off;  ///< It covers what crosses hosts.
  bool hierarchical = true;  ///< All-reduce by hosts, where several ranks are on one host.
  std::string modules;       ///< The folder of the backends; empty: the one beside libhoro.
};

/// The backend that moves the data of a set with members on several hosts.
struct SpanningBackend {
  BackendTable table;                             ///< The path of each bucket, and the reasons.
  std::vector<std::unique_ptr<SetRegion>> rings;  ///< For its steps inside this host.
  std::unique_ptr<Backend> backend;               ///< Ends before `rings`.
};

/// When ranks that connect give up.
struct ConnectLimits {
  std::function<bool()> lost;  ///< A rank was lost. Thread: any.
  Deadline jobs_set;           ///< For the job's own set.
};

/// Thread: one at a time.
class SetConnector {
 public:
  /// The job's own set is the first.
  static constexpr std::uint64_t kJobsSet = 1;

  /// `memory` and `hosts` outlive this.
  SetConnector(const bootstrap::Meeting& meeting, HostMemory& memory, const HostMap& hosts,
               ConnectOptions options, ConnectLimits limits);

  /// Connects this rank with the set's other members. `number` is another one for every set that
  /// ever was; the job's own set has kJobsSet. `index` is another one for every set that there is,
  /// the same on all ranks. `here`: the members on this host. Blocks: until all members call it.
  /// Fails: as the backend; unsupported or unavailable (HORO_CPU_OPERATIONS asks for what cannot be
  /// used, or nothing can be used; with reasons).
  Result<SpanningBackend> connect(std::uint64_t number, std::span<const Rank> ranks,
                                  const Members& here, std::size_t index);

 private:
  Result<BackendChoice> choose(std::span<const Rank> ranks);
  Deadline deadline_of(std::uint64_t number) const;
  timeline::PathReason why_not_by_hosts() const;
  Communicator communicator_of(std::uint64_t number, std::span<const Rank> ranks, std::size_t index,
                               RendezvousStore& store, Deadline deadline);
  Result<std::unique_ptr<Backend>> make(std::string_view module,
                                        const Communicator& communicator) const;
  /// Rings for the two steps inside this host, in the regions from `region` on, and their backends.
  /// Fails: as SetRegion::attach.
  Status add_steps_inside(SpanningBackend& made, HierarchicalParts& parts, const Members& here,
                          std::size_t region) const;

  HostMemory& memory_;
  const HostMap& hosts_;
  ConnectOptions options_;
  const ConnectLimits limits_;
  const Rank me_;
  const Epoch epoch_;
  const std::shared_ptr<bootstrap::JobStore> store_;
  std::shared_ptr<SharedByBackends> shared_;
  std::optional<std::string> mpi_;  ///< As mpi_of(), when the job's first set was connected.
};

}  // namespace horo::runtime
