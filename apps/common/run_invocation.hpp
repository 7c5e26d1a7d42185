// SPDX-License-Identifier: Apache-2.0
// The request to `horo run`: argv, environment and config file as one value. In a tool's main:
//
//     const auto invocation = apps::parse_run({argv + 1, argv + argc}, getenv);
//     if (!invocation) return apps::usage_error("horo run", invocation.error());
//     if (const auto code = apps::answer(*invocation)) return *code;
//     ... invocation->options, invocation->settings ...
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/usage_error.hpp"  // IWYU pragma: export
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/settings.hpp"
#include "base/result.hpp"

namespace horo::apps {

enum class RunAction : std::uint8_t { run, help, version, explain_config, check_build };

/// Options that are not knobs: they say what to run, not how.
struct RunOptions {
  std::optional<int> np;  ///< Unset: all slots of the hosts.
  // At most one of these three is not empty.
  std::string hosts;     ///< -H, as written.
  std::string hostfile;  ///< Path.
  std::string script;    ///< Path of a program that prints hosts.
  std::string plan;      ///< Path of a saved plan that replaces hosts and np; empty: none.
  std::string plan_out;  ///< Path to write the plan to; empty: none.
  bool dry_run = false;  ///< Only print the plan.
  bool json = false;     ///< Plan or explanation as JSON, on standard output.
  bool mpi = false;      ///< mpirun starts the ranks.
  bool jsrun = false;    ///< jsrun starts the ranks.
  bool gloo = false;     ///< mpirun does not, whatever the config file says.
  bool horovod = false;  ///< Act as horovodrun: the config file beats the environment.
  /// argv of the ranks, verbatim. Empty for RunAction::run only with a plan.
  std::vector<std::string> command;
};

struct RunInvocation {
  RunAction action = RunAction::run;
  RunOptions options;
  /// The knobs, as in settings.get(knobs::kGrace). The ranks get settings.exported().
  Settings settings;
};

/// `arguments` do not include the program's name; `lookup` works like getenv.
/// Blocks: for the config file. Fails: invalid_argument, not_found, io; all are usage errors (exit
/// 2).
Result<RunInvocation> parse_run(std::span<const char* const> arguments,
                                const std::function<const char*(const char*)>& lookup);

/// Handles requests that need no ranks (help, version, explain-config, check-build) and returns
/// their exit code; nothing for RunAction::run.
std::optional<int> answer(const RunInvocation& invocation);

}  // namespace horo::apps
