// SPDX-License-Identifier: Apache-2.0
// Programs other than ssh that start an agent on another host: the batch system's own (srun,
// blaunch, jsrun), or one that the user names (--rsh-agent).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/knobs/settings.hpp"
#include "launcher/starters/program/program_carrier.hpp"

namespace horo::launcher {

enum class RemoteProgram : std::uint8_t { srun, blaunch, jsrun, rsh };

std::string_view name(RemoteProgram program);

/// How one host's agent is started by such a program.
struct BatchStart {
  RemoteProgram program = RemoteProgram::srun;
  std::string why;     ///< The reason for this program, for people.
  int component = -1;  ///< srun: index in a heterogeneous job; -1: the job is not heterogeneous.
  int cpus = 0;        ///< jsrun: hardware threads of the host.
  std::vector<std::string> before{};   ///< rsh: the words in front of the host's name.
  std::vector<std::string> between{};  ///< rsh: the words between host and command line.

  friend bool operator==(const BatchStart&, const BatchStart&) = default;
};

/// The batch system, if any, that starts agents on the job's hosts: chosen from the user's settings
/// and from the variables that a batch system sets.
class BatchSystem {
 public:
  using Lookup = std::function<const char*(const char*)>;

  /// `lookup` works like getenv. Blocks: for files, and for CSM and jsrun until the descriptor
  /// `cancel` is readable.
  /// Fails: invalid_argument (the requested batch system is not there), not_found (a requested
  /// program is missing), unavailable (the allocation cannot be read).
  static Result<BatchSystem> find(const Settings& settings, const Lookup& lookup, int cancel = -1);

  /// How to start the agent on `host`; nothing: by ssh. In an elastic job that Slurm has given
  /// further nodes, it asks squeue for them once. Blocks: for that, as find().
  /// Fails: invalid_argument, when the user requested a batch system that does not have the host.
  Result<std::optional<BatchStart>> start_for(const std::string& host) const;

  /// Why the batch system that this job belongs to is not used. Empty: it is used, or there is
  /// none.
  const std::string& why_not() const { return why_not_; }

 private:
  Status find_slurm(const Settings& settings, const Lookup& lookup, int cancel);
  Status find_lsf(const Settings& settings, const Lookup& lookup, int cancel);
  Status find_rsh(const std::string& program, std::string why, const Lookup& lookup);

  bool requested_ = false;  ///< The user asked for it: a host that it does not have is an error.
  std::function<std::optional<BatchStart>(const std::string&)> choose_;
  std::string job_;  ///< For people: "Slurm job 5".
  std::string why_not_;
};

/// The command that starts the agent program at path `agent` on `host`.
/// Fails: as ScratchFile::write.
Result<ProgramWay> program_start(const BatchStart& start, const std::string& host,
                                 const std::string& agent);

/// How to call the rsh agent at `path`, whose content is `script`. Agents need standard input,
/// which the MPI operator's kubexec.sh does not pass on; its kubectl is called directly then, with
/// -i.
BatchStart rsh_start(const std::string& path, std::string_view script);

}  // namespace horo::launcher
