// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "apps/common/plan_file.hpp"
#include "apps/common/run_invocation.hpp"
#include "launcher/plan/job_request.hpp"

namespace horo::apps {

/// The job that `invocation` asks for. `environment`: an array like environ, which outlives the
/// request. `directory`: of the ranks, unless `plan` has one. `plan`: what --plan names.
/// Blocks: for the file system, with --horovod.
launcher::JobRequest make_request(const RunInvocation& invocation, const char* const* environment,
                                  std::string directory, std::optional<SavedPlan> plan);

}  // namespace horo::apps
