// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unistd.h>
#include <vector>

#include "apps/common/explain.hpp"
#include "apps/common/run_invocation.hpp"
#include "apps/common/tools.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

int code_of(bool written) {
  return written ? exit_code::kOk : exit_code::kFailure;
}

int check_build(const RunOptions& options) {
  std::vector<const char*> arguments;
  if (options.json) arguments.push_back("--json");
  if (options.horovod) arguments.push_back("--horovod");
  log::error("run", "{}", become_tool("check-build", arguments).message);
  return exit_code::kFailure;
}

}  // namespace

std::optional<int> answer(const RunInvocation& invocation) {
  switch (invocation.action) {
    case RunAction::run:
      return std::nullopt;
    case RunAction::help:
      return code_of(write_out(cli::help_text(*cli::find_command("run"))));
    case RunAction::version:
      return code_of(write_out(fmt::format("{}\n", version())));
    case RunAction::explain_config:
      return code_of(write_out(invocation.options.json ? explain_json(invocation.settings)
                                                       : explain_text(invocation.settings)));
    case RunAction::check_build:
      return check_build(invocation.options);
  }
  return std::nullopt;
}

}  // namespace horo::apps
