// SPDX-License-Identifier: Apache-2.0
#include "apps/run/mpi_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "apps/run/command.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/mpi/knock.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::apps {

namespace {

Result<std::string> find_mpirun(std::string_view wanted) {
  auto program = find_program(std::string(wanted), std::getenv("PATH"));
  if (program) return program;
  return fail(Errc::not_found,
              "--mpi: {}; install Open MPI or MPICH, name its mpirun with --mpirun, or leave --mpi "
              "out",
              program.error().message);
}

}  // namespace

Status check_rank_order(const launcher::Placement& placement, std::string_view flag) {
  int next = 0;
  for (const auto& host : placement.hosts) {
    for (const auto rank : host.ranks) {
      if (rank.value() == next++) continue;
      return fail(Errc::unsupported,
                  "rank {} cannot be on host '{}' under {}, which fills a host before the next; "
                  "leave {} out, or --map-by or the --plan that wants it so",
                  rank, host.name, flag, flag);
    }
  }
  return {};
}

void forget_other_ranks(Environment& environment) {
  std::erase_if(environment,
                [](const auto& variable) { return launcher::is_of_one_mpi_rank(variable.first); });
}

Result<MpiPlan> plan_mpirun(const RunInvocation& invocation, const Plan& plan,
                            const Environment& environment, int cores) {
  const auto& settings = invocation.settings;
  HORO_TRY_STATUS(check_rank_order(plan.placement, "--mpi"));
  MpiPlan mpi;
  mpi.here = std::all_of(plan.placement.hosts.begin(), plan.placement.hosts.end(),
                         [](const auto& host) { return discovery::is_this_machine(host.name); });
  mpi.environment = environment;
  forget_other_ranks(mpi.environment);
  HORO_TRY(const auto program, find_mpirun(settings.get(knobs::kMpirun)));
  HORO_TRY(const auto kind, launcher::ask_for_mpi(program));
  mpi.program = "mpirun";
  mpi.name = fmt::format("mpirun ({})", launcher::name(kind));
  HORO_TRY(const auto agent, launcher::agent_path());
  launcher::MpiRequest request{.kind = kind,
                               .program = program,
                               .agent = {agent, "--mpi-rank"},
                               .hosts = plan.placement.hosts,
                               .tcp = settings.get(knobs::kTcp),
                               .root = geteuid() == 0,
                               .cores = cores};
  HORO_TRY(request.binding, launcher::split_words(settings.get(knobs::kBindingArgs)));
  HORO_TRY(request.extra, launcher::split_words(settings.get(knobs::kMpiArgs)));
  auto exported = mpi.environment;
  for (const auto* name : {launcher::kDoorVariable, launcher::kDoorSecretVariable})
    exported.emplace_back(name, "");
  request.exported = launcher::names_to_export(exported);
  HORO_TRY(mpi.command, launcher::compose_mpirun(request));
  return mpi;
}

}  // namespace horo::apps
