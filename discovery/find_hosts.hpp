// SPDX-License-Identifier: Apache-2.0
// The one place that decides who is asked for hosts, and says why.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "discovery/source.hpp"

namespace horo::discovery {

/// What the user gave; at most one of `list`, `hostfile` and `script`.
struct HostRequest {
  std::string list;      ///< -H; empty: not given.
  std::string hostfile;  ///< Path; empty: not given.
  std::string script;    ///< Path; empty: not given.
  int default_slots = 1;
  int ranks_per_host = 0;         ///< As many slots of a scheduler's hosts, where there is room.
  std::optional<int> here_slots;  ///< Of this machine where nothing else is known.
  Duration patience{};            ///< For the script, and for a scheduler's programs.
  Lookup environment;
};

struct FoundHosts {
  HostSet hosts;
  std::string source;  ///< "Slurm job 42".
  std::string why;     ///< Why that one, and what decided there.
};

/// The first of: -H, --hostfile, --host-discovery-script, Slurm, LSF, PBS, a Kubernetes MPIJob, and
/// this machine with `here_slots`. What is there and cannot be read is an error, never another
/// source in its place. Blocks: for files; `patience` for programs.
/// Fails: invalid_argument (what the user gave; also nothing known and no `here_slots`),
/// unavailable (an allocation), and as the source.
Result<FoundHosts> find_hosts(const HostRequest& request);

}  // namespace horo::discovery
