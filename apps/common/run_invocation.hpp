// SPDX-License-Identifier: Apache-2.0
// What `horo run` was asked to do: argv, environment and config file as one value. A tool's main:
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

/// What is no knob: it says what to run, not how.
struct RunOptions {
  std::optional<int> np;  ///< Unset: all slots of the hosts.
  std::string hosts;      ///< -H as written; empty: not given. Of these three at most one is.
  std::string hostfile;   ///< Path; empty: not given.
  std::string script;     ///< That prints hosts: path; empty: not given.
  std::string plan;       ///< Path of the plan to run, in place of hosts and np; empty: none.
  std::string plan_out;   ///< Path to write the plan to; empty: none.
  bool dry_run = false;   ///< Print the plan only.
  bool json = false;      ///< Plan or explanation as JSON, on standard output.
  bool mpi = false;       ///< mpirun starts the ranks.
  bool jsrun = false;     ///< jsrun starts the ranks.
  bool gloo = false;      ///< It does not, whatever the config file says.
  bool horovod = false;   ///< As horovodrun: the config file beats the environment.
  std::vector<std::string>
      command;  ///< argv of the ranks, verbatim; empty for RunAction::run only with a plan.
};

struct RunInvocation {
  RunAction action = RunAction::run;
  RunOptions options;
  /// The knobs: settings.get(knobs::kGrace); settings.exported() is what the ranks get.
  Settings settings;
};

/// `arguments` without the program's name; `lookup` as getenv. Blocks: for the config file.
/// Fails: invalid_argument, not_found, io; all of them are usage errors (exit 2).
Result<RunInvocation> parse_run(std::span<const char* const> arguments,
                                const std::function<const char*(const char*)>& lookup);

/// Does what needs no ranks (help, version, explain-config, check-build): its exit code; nothing
/// for RunAction::run.
std::optional<int> answer(const RunInvocation& invocation);

}  // namespace horo::apps
