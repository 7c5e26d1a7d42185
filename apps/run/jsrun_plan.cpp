// SPDX-License-Identifier: Apache-2.0
#include "apps/run/jsrun_plan.hpp"

#include <algorithm>

#include "apps/run/command.hpp"
#include "apps/run/mpi_plan.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "discovery/program.hpp"
#include "discovery/sources/csm.hpp"
#include "launcher/mpi/jsrun.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::apps {

namespace {

constexpr const char* kErfFlag = "--erf_input";

Result<std::string> find_erf(const Plan& plan, const char* allocation, const std::string& jsrun,
                             Duration patience) {
  if (allocation == nullptr) {
    return fail(Errc::invalid_argument,
                "--jsrun: CSM_ALLOCATION_ID is not set, so nobody says what the hosts have; say "
                "where ranks go with --binding-args, in jsrun's words");
  }
  HORO_TRY(const int cpus, count_csm_cpus(jsrun, allocation, patience));
  return launcher::compose_erf(plan.placement.hosts, cpus);
}

}  // namespace

void name_erf(MpiPlan& plan, const std::string& path) {
  auto& words = plan.command.words;
  const auto flag = std::find(words.begin(), words.end(), kErfFlag);
  if (flag != words.end()) *(flag + 1) = path;
}

Result<int> count_csm_cpus(const std::string& jsrun, const std::string& allocation,
                           Duration patience) {
  const auto deadline = Deadline::in(SteadyClock::instance(), patience);
  const auto what = fmt::format("CSM allocation {}", allocation);
  auto found = discovery::ask_csm(discovery::kCsmFolder, allocation, deadline);
  if (!found) return fail(Errc::unavailable, "{}: {}", what, found.error().message);
  const auto& node = found->nodes.front();
  if (found->cores == 0) {
    return fail(Errc::unavailable,
                "{}: node '{}' has no number of discovered_cores beyond the "
                "isolated_cores of each of its discovered_sockets",
                what, node);
  }
  // Only a compute node knows in which of its modes it runs.
  auto lscpu = discovery::output_of({jsrun, "--nrs", "1", "--tasks_per_rs", "1", "--cpu_per_rs",
                                     "1", "--gpu_per_rs", "0", "env", "LC_ALL=C", "lscpu"},
                                    deadline);
  if (!lscpu) return fail(Errc::unavailable, "asking jsrun for lscpu: {}", lscpu.error().message);
  const int threads = launcher::threads_per_core(*lscpu);
  if (threads == 0)
    return fail(Errc::unavailable, "{}: lscpu on its nodes says no 'Thread(s) per core'", what);
  return found->cores * threads;
}

Result<MpiPlan> plan_jsrun(const RunInvocation& invocation, const Plan& plan,
                           const Environment& environment,
                           const std::function<const char*(const char*)>& lookup) {
  if (lookup("LSB_JOBID") == nullptr) {
    return fail(Errc::invalid_argument,
                "--jsrun outside a job of LSF (LSB_JOBID is not set); use bsub, or leave it out");
  }
  const auto& settings = invocation.settings;
  HORO_TRY_STATUS(check_rank_order(plan.placement, "--jsrun"));
  auto program = find_program("jsrun", lookup("PATH"));
  if (!program) return fail(Errc::not_found, "--jsrun: {}", program.error().message);
  MpiPlan jsrun{.program = "jsrun", .name = "jsrun", .environment = environment, .here = false};
  forget_other_ranks(jsrun.environment);
  HORO_TRY(const auto agent, launcher::agent_path());
  launcher::JsrunRequest request{.program = *program, .erf = "ERF", .agent = {agent, "--mpi-rank"}};
  HORO_TRY(request.binding, launcher::split_words(settings.get(knobs::kBindingArgs)));
  request.smp_arguments = settings.get(knobs::kTcp) ? "-tcp" : "";
  if (const auto extra = settings.get(knobs::kMpiArgs); !extra.empty())
    request.smp_arguments += (request.smp_arguments.empty() ? "" : " ") + extra;
  if (request.binding.empty()) {
    HORO_TRY(jsrun.erf, find_erf(plan, lookup("CSM_ALLOCATION_ID"), *program,
                                 settings.get(knobs::kDiscoveryTimeout)));
  }
  jsrun.command.words = launcher::compose_jsrun(request);
  return jsrun;
}

}  // namespace horo::apps
