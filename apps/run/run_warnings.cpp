// SPDX-License-Identifier: Apache-2.0
#include "apps/run/run_warnings.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <unistd.h>

#include <fmt/ranges.h>

#include "apps/run/python_folders.hpp"
#include "base/knobs/controller.hpp"
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/timeline_knobs.hpp"
#include "base/knobs/variable_warnings.hpp"
#include "discovery/network_interfaces.hpp"
#include "discovery/text_file.hpp"
#include "launcher/plan/rank_environment.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::apps {

namespace {

/// The ways of starting ranks that a knob is for; empty: those of this job.
std::string_view scope_beyond(KnobScope scope, const RunOptions& options) {
  const bool agents = !options.mpi && !options.jsrun;
  switch (scope) {
    case KnobScope::every_start:
      return {};
    case KnobScope::agents:
      return agents ? "" : "jobs without --mpi and --jsrun";
    case KnobScope::agents_or_mpirun:
      return options.jsrun ? "jobs without --jsrun" : "";
    case KnobScope::mpirun:
      return options.mpi ? "" : "--mpi";
    case KnobScope::mpirun_or_jsrun:
      return agents ? "--mpi and --jsrun" : "";
  }
  return {};
}

void add_scopes(const RunInvocation& invocation, std::vector<KnobWarning>& warnings) {
  for (const auto& row : knob_rows()) {
    const auto& key = row.text->key;
    const auto beyond = scope_beyond(row.text->scope, invocation.options);
    if (beyond.empty() || !invocation.settings.is_set(key)) continue;
    warnings.push_back(
        {std::string(key), fmt::format("{} ({}) has no effect: it is only for {}", key,
                                       invocation.settings.origin(key).text(), beyond)});
  }
}

/// Knobs that need another one, or an option, which is missing.
void add_missing_partners(const RunInvocation& invocation, std::vector<KnobWarning>& warnings) {
  const auto& settings = invocation.settings;
  const auto& options = invocation.options;
  const auto needs = [&](const KnobText& text, bool met, std::string_view what) {
    if (met || !settings.is_set(text.key)) return;
    warnings.push_back(
        {std::string(text.key), fmt::format("{} ({}) has no effect {}", text.key,
                                            settings.origin(text.key).text(), what)});
  };
  const auto trace = settings.get(knobs::kTimelineFilename);
  needs(knobs::kTimelineMarkCycles.text,
        !settings.get(knobs::kTimelineMarkCycles) || (!trace.empty() && trace != "DYNAMIC"),
        "without a file for the trace; give --timeline-filename FILE");
  needs(knobs::kRestartOn.text, settings.get(knobs::kMaxRestarts) != "0",
        "without restarts; give --max-restarts N");
  needs(knobs::kPrefix.text, settings.get(knobs::kTag) != TagMode::off, "with --tag off");
  const bool elastic = settings.get(knobs::kMinNp) != 0 || settings.get(knobs::kMaxNp) != 0 ||
                       (options.horovod && !options.script.empty());
  for (const auto* text :
       {&knobs::kSpares.text, &knobs::kRejoinTimeout.text, &knobs::kTermGrace.text,
        &knobs::kResetLimit.text, &knobs::kSlotRestarts.text, &knobs::kBlacklistCooldownRange.text})
    needs(*text, elastic, "in a job that is not elastic; give --min-np N");
  const bool lists_hosts =
      !options.hosts.empty() || !options.hostfile.empty() || !options.script.empty();
  needs(
      knobs::kSlotsPerHost.text, lists_hosts,
      "without hosts; it is for hosts of -H, --hostfile or a discovery script that have no number "
      "of slots");
  for (const auto* text : {&knobs::kMapBy.text, &knobs::kRanksPerHost.text}) {
    const bool is_error = settings.origin(text->key).kind == OriginKind::flag;
    needs(*text, options.plan.empty() || is_error, "on a saved plan");
  }
  if (options.json && !options.dry_run && invocation.action == RunAction::run) {
    warnings.push_back({"json",
                        "--json has no effect without --dry-run; for a report of the job as JSON, "
                        "give --json-report FILE"});
  }
}

/// The backend of torch.distributed comes from the Python package, which may not be installed.
void add_torch_backend(const RunInvocation& invocation, std::vector<KnobWarning>& warnings) {
  const auto& text = knobs::kTorchBackend.text;
  if (invocation.settings.get(knobs::kTorchBackend) != TorchBackend::horo ||
      !python_path_with(kTorchBackendFolder, "").empty())
    return;
  warnings.push_back({std::string(text.key),
                      fmt::format("{} ({}) has no effect: this installation has no Python package; "
                                  "install one that has the launcher, with pip or cmake --install",
                                  text.key, invocation.settings.origin(text.key).text())});
}

/// Horovod starts its ranks as HOROVOD_CONTROLLER says.
void add_controller(const RunOptions& options, const char* const* environment,
                    std::vector<KnobWarning>& warnings) {
  // A launcher inside a rank inherits that rank's variables.
  if (launcher::find_variable(environment, "HORO_RANK") != nullptr) return;
  for (const auto* name : kControllerVariables) {
    const auto value = launcher::variable_or_empty(environment, name);
    if (value.empty()) continue;
    const bool wants_mpi = is_mpi_controller(value);
    if (wants_mpi == (options.mpi || options.jsrun)) continue;
    warnings.push_back(
        {name, fmt::format("the variable {}={} has no effect: {}", name, value,
                           wants_mpi ? "--mpi lets mpirun start the ranks"
                                     : "--mpi, --jsrun or the config file decides")});
  }
}

/// Ranks on this machine are to get GPUs, and there is none.
bool lacks_gpus(const launcher::JobPlan& plan) {
  if (plan.gpus != GpuMode::automatic || !plan.this_machine) return false;
  const auto& parts = plan.parts[*plan.this_machine];
  return parts && std::all_of(parts->ranks.begin(), parts->ranks.end(),
                              [](const auto& part) { return part.gpus.empty(); });
}

}  // namespace

std::vector<KnobWarning> run_warnings(const RunInvocation& invocation,
                                      const char* const* environment) {
  auto warnings = invocation.settings.warnings();
  for (auto& warning : variable_warnings(environment)) warnings.push_back(std::move(warning));
  add_scopes(invocation, warnings);
  add_missing_partners(invocation, warnings);
  add_torch_backend(invocation, warnings);
  add_controller(invocation.options, environment, warnings);
  return warnings;
}

std::vector<KnobWarning> plan_warnings(const RunInvocation& invocation,
                                       const launcher::JobPlan& plan) {
  const auto& settings = invocation.settings;
  std::vector<KnobWarning> warnings;
  if (!invocation.options.script.empty() && !plan.elastic) {
    warnings.push_back(
        {"host-discovery-script",
         "the discovery script is asked when the job starts or restarts; hosts "
         "that it names later do not join the running job; give --min-np N for that"});
  }
  if (lacks_gpus(plan)) {
    warnings.push_back({std::string(knobs::kGpus.text.key),
                        fmt::format("gpus ({}) has no effect on host '{}': it has no GPU",
                                    settings.origin(knobs::kGpus.text.key).text(),
                                    plan.placement.hosts[*plan.this_machine].name)});
  }
  const auto identity = settings.get(knobs::kSshIdentityFile);
  if (!identity.empty() && access(launcher::expand_home(identity).c_str(), R_OK) != 0) {
    warnings.push_back({std::string(knobs::kSshIdentityFile.text.key),
                        fmt::format("{} ({}) has no effect: '{}' cannot be read: {}",
                                    knobs::kSshIdentityFile.text.key,
                                    settings.origin(knobs::kSshIdentityFile.text.key).text(),
                                    identity, std::generic_category().message(errno))});
  }
  const auto interfaces = discovery::list_interfaces();
  if (!plan.this_machine || !interfaces) return warnings;
  std::vector<std::string_view> known;
  for (const auto& one : *interfaces) known.emplace_back(one.name);
  for (const auto* knob : {&knobs::kNetworkInterfaces, &knobs::kGlooInterface}) {
    const auto names = settings.get(*knob);
    for (const auto name : discovery::words(names, ",")) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      warnings.push_back(
          {std::string(knob->text.key),
           fmt::format("this machine has no network interface '{}' ({}); it has {}", name,
                       settings.origin(knob->text.key).text(), fmt::join(known, ", "))});
    }
  }
  return warnings;
}

std::string subjects_of(const std::vector<KnobWarning>& warnings) {
  std::string text;
  for (const auto& warning : warnings) {
    if (warning.subject.empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", warning.subject);
  }
  return text;
}

}  // namespace horo::apps
