// SPDX-License-Identifier: Apache-2.0
// A plan for people and programs to read: --dry-run and --verbose.
#pragma once

#include <string>

#include "launcher/plan/job_plan.hpp"

namespace horo::apps {

/// One line about the binding and GPUs of the ranks on host number `host`.
std::string describe_parts(const launcher::JobPlan& plan, std::size_t host);

/// "; by ssh as root to h1, port 22, from host h0"; empty: the host is this machine.
std::string describe_start(const launcher::JobPlan& plan, std::size_t host);

std::string plan_text(const launcher::JobPlan& plan);
std::string plan_json(const launcher::JobPlan& plan);

}  // namespace horo::apps
