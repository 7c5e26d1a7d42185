// SPDX-License-Identifier: Apache-2.0
#include "apps/run/make_request.hpp"

#include <utility>

#include "apps/run/horovod_names.hpp"

namespace horo::apps {

using launcher::JobRequest;

namespace {

launcher::RankStarter starter_of(const RunOptions& options) {
  if (options.mpi) return launcher::RankStarter::mpirun;
  return options.jsrun ? launcher::RankStarter::jsrun : launcher::RankStarter::agents;
}

/// Makes `import horovod` find Horo.
void add_horovod_names(JobRequest& request) {
  request.format = launcher::OutputFormat::horovod;
  auto path = horovod_python_path(launcher::variable_or_empty(request.environment, "PYTHONPATH"));
  if (!path.empty()) request.extra_variables.emplace_back("PYTHONPATH", std::move(path));
}

}  // namespace

JobRequest make_request(const RunInvocation& invocation, const char* const* environment,
                        std::string directory, std::optional<SavedPlan> plan) {
  const auto& options = invocation.options;
  JobRequest request{.command = options.command,
                     .directory = plan ? plan->directory : std::move(directory),
                     .environment = environment,
                     .np = options.np,
                     .hosts = options.hosts,
                     .hostfile = options.hostfile,
                     .script = options.script,
                     .saved_plan = std::move(plan),
                     .saved_plan_path = options.plan,
                     .starter = starter_of(options),
                     .settings = invocation.settings};
  if (options.horovod) add_horovod_names(request);
  return request;
}

}  // namespace horo::apps
