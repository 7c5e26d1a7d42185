// SPDX-License-Identifier: Apache-2.0
// The command line of an mpirun that starts one agent per rank. Pure: words from a placement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "launcher/mpi/mpi_kind.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

struct MpiRequest {
  MpiKind kind = MpiKind::open_mpi;
  std::string program;                  ///< Path of mpirun.
  std::vector<std::string> agent;       ///< The command that mpirun starts once per rank.
  std::vector<PlacedHost> hosts;        ///< In the order of their ranks.
  std::vector<std::string> binding;     ///< Replaces the usual binding options; empty: use those.
  std::vector<std::string> extra;       ///< The user's own options, put in front of the agent.
  std::vector<std::string> exported;    ///< Names of variables to pass to the ranks.
  std::vector<std::string> ssh;         ///< Arguments of its ssh: "-p", "22"; empty: none.
  std::vector<std::string> interfaces;  ///< Those that MPI may use; empty: all.
  bool tcp = false;   ///< Use TCP between hosts, even if there are faster networks.
  bool root = false;  ///< Running as root: Open MPI needs an option for that.
  int cores = 0;      ///< Usable on this machine; 0: not known.
};

struct MpiCommand {
  std::vector<std::string> words;
  Environment variables{};  ///< For mpirun itself.
  /// Explanations of options that may surprise a user, a line each.
  std::vector<std::string> notes;
};

/// Fails: unsupported, for wishes that this MPI has no options for.
Result<MpiCommand> compose_mpirun(const MpiRequest& request);

/// Names of the variables in `environment` that mpirun has to pass on: sorted, each once, without
/// names that no shell could have set.
std::vector<std::string> names_to_export(const Environment& environment);

/// True for a variable that an MPI gives to one rank. An mpirun that inherits it takes itself for
/// that rank.
bool is_of_one_mpi_rank(std::string_view variable);

}  // namespace horo::launcher
