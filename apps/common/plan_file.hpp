// SPDX-License-Identifier: Apache-2.0
// The file that --plan-out writes and --plan reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/plan/saved_plan.hpp"

namespace horo::apps {

using launcher::SavedHost;
using launcher::SavedPlan;

/// The plan as JSON, with ranks as "0-3,8". Pure.
std::string plan_file_text(const SavedPlan& plan);

/// Reads such text and checks it: every rank from 0 up is on one host, and every host has ranks and
/// a name of its own. `path` is for messages. Fails: invalid_argument, naming path, line, column
/// and what is wrong.
Result<SavedPlan> parse_plan_file(const std::string& text, std::string_view path);

/// Blocks: for the file. Fails: not_found, permission_denied, io, invalid_argument.
Result<SavedPlan> read_plan_file(const std::string& path);

/// Fails: permission_denied, not_found, io.
Status write_plan_file(const std::string& path, const SavedPlan& plan);

}  // namespace horo::apps
