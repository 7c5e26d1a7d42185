// SPDX-License-Identifier: Apache-2.0
#include "apps/run/run_warnings.hpp"

#include <algorithm>
#include <string>

#include <fmt/ranges.h>

#include "base/knobs/controller.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/variable_warnings.hpp"
#include "discovery/network_interfaces.hpp"
#include "discovery/text_file.hpp"
#include "launcher/plan/rank_environment.hpp"

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

}  // namespace

std::vector<KnobWarning> run_warnings(const RunInvocation& invocation,
                                      const char* const* environment) {
  auto warnings = invocation.settings.warnings();
  for (auto& warning : variable_warnings(environment)) warnings.push_back(std::move(warning));
  add_scopes(invocation, warnings);
  add_controller(invocation.options, environment, warnings);
  return warnings;
}

std::vector<KnobWarning> plan_warnings(const RunInvocation& invocation,
                                       const launcher::JobPlan& plan) {
  const auto& settings = invocation.settings;
  std::vector<KnobWarning> warnings;
  if (!invocation.options.script.empty()) {
    warnings.push_back({"host-discovery-script",
                        "the discovery script is asked when the job starts or restarts; hosts "
                        "that it names later do not join the running job"});
  }
  const auto names = settings.get(knobs::kNetworkInterfaces);
  if (names.empty() || !plan.this_machine) return warnings;
  const auto interfaces = discovery::list_interfaces();
  if (!interfaces) return warnings;
  std::vector<std::string_view> known;
  for (const auto& one : *interfaces) known.emplace_back(one.name);
  for (const auto name : discovery::words(names, ",")) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(
        {std::string(knobs::kNetworkInterfaces.text.key),
         fmt::format("this machine has no network interface '{}' ({}); it has {}", name,
                     settings.origin("network.interfaces").text(), fmt::join(known, ", "))});
  }
  return warnings;
}

std::string subjects_of(const std::vector<KnobWarning>& warnings) {
  std::string text;
  for (const auto& warning : warnings)
    text += fmt::format("{}{}", text.empty() ? "" : ",", warning.subject);
  return text;
}

}  // namespace horo::apps
