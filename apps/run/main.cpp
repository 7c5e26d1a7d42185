// SPDX-License-Identifier: Apache-2.0
// horo-run: starts a command as the ranks of a job and stays until the last of them is gone.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/common/variables.hpp"
#include "apps/run/attempts.hpp"
#include "apps/run/command.hpp"
#include "apps/run/horovod_names.hpp"
#include "apps/run/plan.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knobs.hpp"
#include "base/log.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/process/spawn.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kTool = "horo run";

/// A standard stream that was closed would be the number of the next descriptor we open, and what
/// the ranks print would go there.
void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() gives the lowest free number, which is this one.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
}

/// As it was found: an event loop changes it.
bool ignores_broken_pipes() {
  struct sigaction action {};

  return sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// A well-formed request that cannot be met here.
int refuse(const Error& error) {
  const auto text = fmt::format("{}: {}\n", kTool, error.message);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  if (error.code == Errc::not_found) return exit_code::kCommandNotFound;
  if (error.code == Errc::permission_denied) return exit_code::kNotExecutable;
  return exit_code::kFailure;
}

/// What the user gave is a usage error; an allocation that cannot be read is not.
int refuse_plan(const Error& error) {
  const bool theirs = error.code == Errc::unavailable || error.code == Errc::timed_out;
  return theirs ? refuse(error) : usage_error(kTool, error);
}

/// What --plan names; its command where none was given.
Result<std::optional<PlanFile>> read_plan(RunInvocation& invocation) {
  if (invocation.options.plan.empty()) return std::optional<PlanFile>{};
  HORO_TRY(auto file, read_plan_file(invocation.options.plan));
  if (invocation.options.command.empty()) invocation.options.command = file.command;
  return std::optional(std::move(file));
}

/// A path as seen from `folder`; empty: from here.
std::string in_folder(const std::string& word, const std::string& folder) {
  const bool moves = !folder.empty() && word.find('/') != std::string::npos && word[0] != '/';
  return moves ? fmt::format("{}/{}", folder, word) : word;
}

int run(std::span<const char* const> arguments) {
  open_standard_streams();
  const bool pipes_ignored = ignores_broken_pipes();
  const auto begin = SteadyClock::instance().now();
  auto invocation = parse_run(arguments, [](const char* name) { return std::getenv(name); });
  if (!invocation) return usage_error(kTool, invocation.error());
  if (const auto code = answer(*invocation)) return *code;
  log::set_level(invocation->settings.get(knobs::kLogLevel));
  log::set_timestamps(invocation->settings.get(knobs::kLogTimestamp));
  for (const auto& line : invocation->settings.ignored()) log::debug("run", "{}", line);
  for (const auto& warning : mistyped_variables(environ)) log::warn("run", "{}", warning);

  auto file = read_plan(*invocation);
  if (!file) return usage_error(kTool, file.error());
  std::error_code no_directory;
  auto directory = std::filesystem::current_path(no_directory).string();
  if (no_directory)
    return refuse({Errc::io, fmt::format("the working directory: {}", no_directory.message())});
  if (*file) directory = (*file)->directory;
  const auto& word = invocation->options.command.front();
  const auto program = find_program(in_folder(word, *file ? directory : ""), std::getenv("PATH"));
  const PlanContext context{.environment = environ,
                            .directory = directory,
                            .program = program ? *program : word,
                            .cores = discovery::usable_cores(),
                            .file = std::move(file).value()};
  auto policy = launcher::RestartPolicy::parse(invocation->settings.get(knobs::kMaxRestarts),
                                               invocation->settings.get(knobs::kRestartOn));
  if (!policy) return usage_error(kTool, policy.error());
  auto plan = make_plan(*invocation, context);
  if (!plan) return refuse_plan(plan.error());
  // What only other hosts run need not be here.
  if (!program && plan->ways.stay_here()) return refuse(program.error());
  if (const auto& path = invocation->options.plan_out; !path.empty()) {
    if (const auto written = write_plan_file(path, file_of(*plan)); !written)
      return usage_error(kTool, written.error());
  }
  if (invocation->options.dry_run) {
    return write_out(invocation->options.json ? plan_json(*plan) : plan_text(*plan))
               ? exit_code::kOk
               : exit_code::kFailure;
  }
  // Ranks get the old limit back; log files and ranks' connections need more than a shell's usual
  // one.
  if (auto raised = launcher::raise_descriptor_limit(); !raised) {
    log::warn("run", "{}", raised.error().message);
  }
  auto files = open_files(*invocation, static_cast<int>(plan->placement.ranks.size()));
  if (!files) return usage_error(kTool, files.error());
  History history{
      .policy = std::move(policy).value(), .begin = begin, .pipes_ignored = pipes_ignored};
  const auto code = run_attempts(*invocation, context, std::move(plan).value(), *files, history);
  return code ? *code : refuse({Errc::io, code.error().message});
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.empty()) return horo::apps::run(arguments);
  if (!horo::apps::is_horovodrun(arguments.front())) return horo::apps::run(arguments.subspan(1));
  std::vector<const char*> words{"--horovod"};
  words.insert(words.end(), arguments.begin() + 1, arguments.end());
  return horo::apps::run(words);
}
