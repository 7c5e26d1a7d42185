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

/// mpirun numbers its ranks host after host.
Status check_numbers(const launcher::Placement& placement) {
  int next = 0;
  for (const auto& host : placement.hosts) {
    for (const auto rank : host.ranks) {
      if (rank.value() == next++) continue;
      return fail(
          Errc::unsupported,
          "rank {} cannot be on host '{}' under --mpi: mpirun fills a host before the next; "
          "leave --mpi out, or --map-by or the --plan that wants it so",
          rank, host.name);
    }
  }
  return {};
}

}  // namespace

Result<MpiPlan> plan_mpirun(const RunInvocation& invocation, const Plan& plan,
                            const Environment& environment, int cores) {
  const auto& settings = invocation.settings;
  HORO_TRY_STATUS(check_numbers(plan.placement));
  MpiPlan mpi;
  mpi.here = std::all_of(plan.placement.hosts.begin(), plan.placement.hosts.end(),
                         [](const auto& host) { return discovery::is_this_machine(host.name); });
  mpi.environment = environment;
  std::erase_if(mpi.environment,
                [](const auto& variable) { return launcher::is_of_one_mpi_rank(variable.first); });
  HORO_TRY(const auto program, find_mpirun(settings.get(knobs::kMpirun)));
  HORO_TRY(mpi.kind, launcher::ask_for_mpi(program));
  HORO_TRY(const auto agent, launcher::agent_path());
  launcher::MpiRequest request{.kind = mpi.kind,
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
