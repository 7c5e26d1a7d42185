// SPDX-License-Identifier: Apache-2.0
#include "apps/run/make_request.hpp"

#include <utility>

#include "apps/run/python_folders.hpp"
#include "base/knobs/launcher_knobs.hpp"

namespace horo::apps {

using launcher::JobRequest;

namespace {

launcher::RankStarter starter_of(const RunOptions& options) {
  if (options.mpi) return launcher::RankStarter::mpirun;
  return options.jsrun ? launcher::RankStarter::jsrun : launcher::RankStarter::agents;
}

/// Puts folders of the Python package first in PYTHONPATH: one makes `import horovod` find Horo,
/// the other gives torch.distributed its backend.
void add_python_folders(JobRequest& request, bool horovod) {
  const auto inherited = launcher::variable_or_empty(request.environment, "PYTHONPATH");
  std::string path(inherited);
  if (horovod) path = python_path_with(kHorovodNames, path);
  if (request.settings.get(knobs::kTorchBackend) == TorchBackend::horo)
    path = python_path_with(kTorchBackendFolder, path);
  if (path != inherited) request.extra_variables.emplace_back("PYTHONPATH", std::move(path));
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
  if (options.horovod) request.format = launcher::OutputFormat::horovod;
  add_python_folders(request, options.horovod);
  return request;
}

}  // namespace horo::apps
