// SPDX-License-Identifier: Apache-2.0
// The command line of an mpirun that starts one agent per rank. Pure: from a placement to words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "launcher/mpi/kind.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

struct MpiRequest {
  MpiKind kind = MpiKind::open_mpi;
  std::string program;                ///< mpirun.
  std::vector<std::string> agent;     ///< What it starts once per rank.
  std::vector<PlacedHost> hosts;      ///< In the order of their ranks.
  std::vector<std::string> binding;   ///< In place of what is usual; empty: that.
  std::vector<std::string> extra;     ///< The user's, in front of the agent.
  std::vector<std::string> exported;  ///< Names of variables that the ranks are to have.
  bool tcp = false;                   ///< Between hosts TCP only, whatever else there is.
  bool root = false;                  ///< Open MPI refuses to start as root unless it is told.
  int cores = 0;                      ///< Usable on this machine; 0: not known.
};

struct MpiCommand {
  std::vector<std::string> words;
  /// What stands in it for a reason that a user may wonder about, a line each.
  std::vector<std::string> notes;
};

/// Fails: unsupported, for what this MPI cannot be told.
Result<MpiCommand> compose_mpirun(const MpiRequest& request);

/// Words as a shell would cut them: blanks, single and double quotes, backslashes; nothing is
/// expanded. Fails: invalid_argument (a quote that does not end).
Result<std::vector<std::string>> split_words(std::string_view text);

/// Names of what an mpirun is to pass on of `environment`: sorted, each once, without names that no
/// shell could have set.
std::vector<std::string> names_to_export(const Environment& environment);

/// True for a variable that an MPI has given to one rank: an mpirun that inherits it believes to be
/// that rank.
bool is_of_one_mpi_rank(std::string_view variable);

}  // namespace horo::launcher
