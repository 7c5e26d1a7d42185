// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/mpi_plan.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "base/cli/split_words.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "launcher/plan/find_program.hpp"
#include "launcher/plan/rank_environment.hpp"
#include "launcher/starters/dial_in/dial_launcher.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::launcher {

namespace {

/// The words that mpirun gives its ssh. mpirun cuts them at blanks and knows no quotes.
Result<std::vector<std::string>> ssh_arguments(const Settings& settings) {
  std::vector<std::string> words;
  if (const int port = settings.get(knobs::kSshPort); port != 0)
    words.insert(words.end(), {"-p", std::to_string(port)});
  const auto key = settings.get(knobs::kSshIdentityFile);
  if (key.find_first_of(" \t") != std::string::npos) {
    return fail(Errc::invalid_argument,
                "--ssh-identity-file '{}': with --mpi, the path must have no blanks", key);
  }
  if (!key.empty()) words.insert(words.end(), {"-i", key});
  return words;
}

}  // namespace

Status check_rank_order(const Placement& placement, std::string_view flag) {
  int next = 0;
  for (const auto& host : placement.hosts) {
    for (const auto rank : host.ranks) {
      if (rank.value() == next++) continue;
      return fail(Errc::unsupported,
                  "rank {} cannot be on host '{}' with {}, which numbers ranks host by host; leave "
                  "out {}, or the --map-by or --plan that asks for another order",
                  rank, host.name, flag, flag);
    }
  }
  return {};
}

Environment without_rank_variables(Environment environment) {
  std::erase_if(environment,
                [](const auto& variable) { return is_of_one_mpi_rank(variable.first); });
  return environment;
}

Result<MpiFacts> probe_mpirun(const JobRequest& request, const Placement& placement) {
  HORO_TRY_STATUS(check_rank_order(placement, "--mpi"));
  auto program = find_program(request.settings.get(knobs::kMpirun), request.variable("PATH"));
  if (!program) {
    return fail(Errc::not_found,
                "--mpi: {}; install Open MPI or MPICH, name its mpirun with --mpirun, or leave "
                "--mpi out",
                program.error().message);
  }
  MpiFacts facts{.program = std::move(*program), .agent = {}, .root = geteuid() == 0};
  HORO_TRY(facts.kind, ask_for_mpi(facts.program, request.cancel));
  HORO_TRY(facts.agent, agent_path());
  return facts;
}

Result<MpiPlan> plan_mpirun(const JobRequest& request, const MpiFacts& facts,
                            const Placement& placement, const Environment& environment, int cores) {
  const auto& settings = request.settings;
  MpiPlan plan{.program = "mpirun",
               .name = fmt::format("mpirun ({})", name(facts.kind)),
               .command = {},
               .erf = {},
               .environment = without_rank_variables(environment)};
  MpiRequest command{.kind = facts.kind,
                     .program = facts.program,
                     .agent = {facts.agent, "--dial-in"},
                     .hosts = placement.hosts,
                     .tcp = settings.get(knobs::kTcp),
                     .root = facts.root,
                     .cores = cores};
  HORO_TRY(command.binding, split_words(settings.get(knobs::kBindingArgs)));
  HORO_TRY(command.extra, split_words(settings.get(knobs::kMpiArgs)));
  HORO_TRY(command.ssh, ssh_arguments(settings));
  HORO_TRY(command.interfaces, network_interfaces(settings));
  auto exported = plan.environment;
  for (const auto* name : {kLauncherVariable, kLauncherSecretVariable})
    exported.emplace_back(name, "");
  command.exported = names_to_export(exported);
  HORO_TRY(plan.command, compose_mpirun(command));
  const auto& own = plan.command.variables;
  plan.environment.insert(plan.environment.end(), own.begin(), own.end());
  return plan;
}

}  // namespace horo::launcher
