// SPDX-License-Identifier: Apache-2.0
// Chooses the source of the hosts and says why.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "discovery/source.hpp"

namespace horo::discovery {

/// The user's request; at most one of `list`, `hostfile` and `script` is set.
struct HostRequest {
  std::string list;      ///< -H; empty if not given.
  std::string hostfile;  ///< Path; empty if not given.
  std::string script;    ///< Path; empty if not given.
  int default_slots = 1;
  /// Slots per host of a scheduler's job, as far as its CPUs and GPUs reach.
  int ranks_per_host = 0;
  std::optional<int> here_slots;  ///< Slots of this machine, used if there is no other source.
  NoHosts no_hosts = NoHosts::refused;  ///< For --hostfile and --host-discovery-script.
  Duration timeout{};                   ///< Time for the script and for a scheduler's programs.
  int cancel = -1;                      ///< Such a program ends when this is readable (WaitLimit).
  Lookup environment;
};

struct FoundHosts {
  HostSet hosts;
  std::string source;       ///< "Slurm job 42".
  std::string why;          ///< Reason for the source, and origin of the slots.
  bool may_change = false;  ///< The source may name other hosts later: a file or a program.
  Duration pause = std::chrono::seconds(1);  ///< Then: between two questions to the source.
};

/// Uses the first of: -H, --hostfile, --host-discovery-script, Slurm, LSF, PBS, a Kubernetes
/// MPIJob, and this machine with `here_slots`. Where no hosts are allowed, the nodes of a Slurm job
/// are those that it has now, where squeue can tell, and those of an LSF job come from its file. A
/// source that exists but cannot be read is an error; no other source replaces it. Blocks: for
/// files; `timeout` for programs. Fails: invalid_argument (a wrong value, or no source and no
/// `here_slots`), unavailable (an allocation), and as the source.
Result<FoundHosts> find_hosts(const HostRequest& request);

}  // namespace horo::discovery
