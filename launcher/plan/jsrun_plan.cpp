// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/jsrun_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/cli/split_words.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "launcher/mpi/jsrun_command.hpp"
#include "launcher/plan/csm_cpus.hpp"
#include "launcher/plan/find_program.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kErfFlag = "--erf_input";

}  // namespace

void name_erf(MpiPlan& plan, const std::string& path) {
  auto& words = plan.command.words;
  const auto flag = std::find(words.begin(), words.end(), kErfFlag);
  if (flag != words.end()) *(flag + 1) = path;
}

Result<MpiFacts> probe_jsrun(const JobRequest& request, const Placement& placement) {
  if (request.variable("LSB_JOBID") == nullptr) {
    return fail(Errc::invalid_argument,
                "--jsrun outside a job of LSF (LSB_JOBID is not set); use bsub, or leave it out");
  }
  HORO_TRY_STATUS(check_rank_order(placement, "--jsrun"));
  auto program = find_program("jsrun", request.variable("PATH"));
  if (!program) return fail(Errc::not_found, "--jsrun: {}", program.error().message);
  MpiFacts facts{.program = std::move(*program), .agent = {}};
  HORO_TRY(facts.agent, agent_path());
  HORO_TRY(const auto binding, split_words(request.settings.get(knobs::kBindingArgs)));
  if (!binding.empty()) return facts;
  const char* allocation = request.variable("CSM_ALLOCATION_ID");
  if (allocation == nullptr) {
    return fail(
        Errc::invalid_argument,
        "--jsrun: CSM_ALLOCATION_ID is not set, so the hosts' cores are not known; place the "
        "ranks with jsrun's own options in --binding-args");
  }
  const auto deadline =
      Deadline::in(SteadyClock::instance(), request.settings.get(knobs::kDiscoveryTimeout));
  HORO_TRY(facts.cpus, count_csm_cpus(facts.program, allocation, {deadline, request.cancel}));
  return facts;
}

Result<MpiPlan> plan_jsrun(const JobRequest& request, const MpiFacts& facts,
                           const Placement& placement, const Environment& environment) {
  const auto& settings = request.settings;
  MpiPlan plan{.program = "jsrun",
               .name = "jsrun",
               .command = {},
               .erf = {},
               .environment = without_rank_variables(environment),
               .here = false};
  JsrunRequest command{.program = facts.program, .erf = "ERF", .agent = {facts.agent, "--dial-in"}};
  HORO_TRY(command.binding, split_words(settings.get(knobs::kBindingArgs)));
  command.smp_arguments = settings.get(knobs::kTcp) ? "-tcp" : "";
  if (const auto extra = settings.get(knobs::kMpiArgs); !extra.empty())
    command.smp_arguments += (command.smp_arguments.empty() ? "" : " ") + extra;
  if (command.binding.empty()) {
    HORO_TRY(plan.erf, compose_erf(placement.hosts, facts.cpus));
  }
  plan.command.words = compose_jsrun(command);
  return plan;
}

}  // namespace horo::launcher
