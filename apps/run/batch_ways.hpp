// SPDX-License-Identifier: Apache-2.0
// Ways to a host other than ssh: a batch system's own program, or one that the user names.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/knobs/settings.hpp"
#include "launcher/starters/program/program_carrier.hpp"

namespace horo::apps {

enum class BatchProgram : std::uint8_t { srun, blaunch, jsrun, rsh };

std::string_view name(BatchProgram program);

/// How one host's agent is started without ssh.
struct BatchWay {
  BatchProgram program = BatchProgram::srun;
  std::string why;     ///< This way and no other.
  int component = -1;  ///< Of srun: of a heterogeneous job; -1: of another.
  int cpus = 0;        ///< Of jsrun: the host's hardware threads.
  /// Of an rsh agent: the words before the host, and those between it and the command line.
  std::vector<std::string> before{};
  std::vector<std::string> between{};
};

/// Who starts agents on a job's hosts, as the user wants it and the batch system's variables say.
class BatchWays {
 public:
  using Lookup = std::function<const char*(const char*)>;

  /// `lookup` as getenv. Blocks: for files, CSM and jsrun. Fails: invalid_argument (what was asked
  /// for is not there), not_found (a program that was asked for), unavailable (an allocation).
  static Result<BatchWays> find(const Settings& settings, const Lookup& lookup);

  /// Nothing: by ssh. Fails: invalid_argument, for a host that the batch system does not have and
  /// was asked for.
  Result<std::optional<BatchWay>> to(const std::string& host) const;

  /// Why not by the batch system that this is a job of; empty: by it, or it is none.
  const std::string& why_not() const { return why_not_; }

 private:
  Status find_slurm(const Lookup& lookup);
  Status find_lsf(const Settings& settings, const Lookup& lookup);
  Status find_rsh(const std::string& program, std::string why, const Lookup& lookup);

  bool demanded_ = false;  ///< A host that it does not have is an error.
  std::optional<BatchWay> way_;
  std::function<std::optional<BatchWay>(const std::string&)> choose_;
  std::string job_;  ///< For people: "Slurm job 5".
  std::string why_not_;
};

/// The command that starts the agent at `agent` on `host`. Fails: as ScratchFile::write.
Result<launcher::ProgramWay> program_way(const BatchWay& way, const std::string& host,
                                         const std::string& agent);

/// How to call the rsh agent at `path`, whose text is `script`. The MPI operator's kubexec.sh does
/// not pass standard input on, which agents need: its kubectl is called itself, with -i.
BatchWay rsh_way(const std::string& path, std::string_view script);

}  // namespace horo::apps
