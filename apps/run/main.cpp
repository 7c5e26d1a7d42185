// SPDX-License-Identifier: Apache-2.0
// horo-run: starts a command as the ranks of a job, and stays until the last of them is gone.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/run/make_request.hpp"
#include "apps/run/plan_text.hpp"
#include "apps/run/python_folders.hpp"
#include "apps/run/run_messages.hpp"
#include "apps/run/run_warnings.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/variable_warnings.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/run/interruptible.hpp"
#include "launcher/run/job_runner.hpp"
#include "launcher/run/planning.hpp"
#include "launcher/run/signal_listener.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kTool = "horo run";

/// If a standard stream is closed, the next descriptor that this process opens gets its number, and
/// the ranks' output would go there.
void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() gives the lowest free number, which is this one.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
}

/// Whether the caller ignored SIGPIPE. Valid only before an event loop changes that.
launcher::ClosedOutput closed_output_policy() {
  struct sigaction action {};

  const bool ignored = sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  return ignored ? launcher::ClosedOutput::ignore : launcher::ClosedOutput::stop_job;
}

/// Reports a request that is well-formed but cannot be met on this machine.
int refuse(const Error& error) {
  const auto text = fmt::format("{}: {}\n", kTool, printable_lines(error.message));
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  if (error.code == Errc::not_found) return exit_code::kCommandNotFound;
  if (error.code == Errc::permission_denied) return exit_code::kNotExecutable;
  return exit_code::kFailure;
}

/// A plan that cannot be made is a usage error, unless an allocation could not be read.
int refuse_plan(const Error& error) {
  const bool environment = error.code == Errc::unavailable || error.code == Errc::timed_out;
  return environment ? refuse(error) : usage_error(kTool, error);
}

/// Reports a signal that came while the job was planned.
int stop_before_start(int signal, const Settings& settings) {
  log::error("run", "stopped by signal {} (SIG{}) before the job started", signal,
             sigabbrev_np(signal));
  return signal == launcher::number_of(settings.get(knobs::kSignal))
             ? exit_code::kQueueAgain
             : exit_code::kSignalBase + signal;
}

/// The file that --plan names. Its command counts where none was given.
Result<std::optional<SavedPlan>> read_plan(RunInvocation& invocation) {
  if (invocation.options.plan.empty()) return std::optional<SavedPlan>{};
  HORO_TRY(auto file, read_plan_file(invocation.options.plan));
  if (invocation.options.command.empty()) invocation.options.command = file.command;
  return std::optional(std::move(file));
}

void set_up_log(const Settings& settings) {
  log::set_level(settings.get(knobs::kLogLevel));
  log::set_timestamps(settings.get(knobs::kLogTimestamp));
}

void show(const std::vector<KnobWarning>& warnings) {
  for (const auto& warning : warnings) log::warn("run", "{}", warning.text);
}

/// Warns of settings without effect. The ranks are told of it, so that none repeats the warning.
void warn_of_settings(const RunInvocation& invocation, launcher::JobRequest& request) {
  const auto warnings = run_warnings(invocation, environ);
  show(warnings);
  if (!warnings.empty())
    request.extra_variables.emplace_back(kWarnedVariable, subjects_of(warnings));
}

/// The files that the user named for the job to write to. They are opened before the job starts, so
/// that a wrong path costs no training time.
struct RunFiles {
  std::optional<launcher::LogFiles> logs;  ///< --output-filename.
  ReportFile report;                       ///< --json-report.
};

Result<RunFiles> open_files(const Settings& settings, int size) {
  RunFiles files;
  if (const auto directory = settings.get(knobs::kOutputFilename); !directory.empty()) {
    HORO_TRY(auto logs, launcher::LogFiles::create(directory, size));
    files.logs.emplace(std::move(logs));
  }
  HORO_TRY(files.report, ReportFile::open(settings.get(knobs::kJsonReport)));
  return files;
}

int run_job(launcher::JobRequest request, launcher::JobPlan plan,
            launcher::JobRunnerOptions options) {
  // Ranks get the old limit back. Log files and ranks' connections need more descriptors than a
  // shell's usual limit.
  if (auto raised = launcher::raise_descriptor_limit(); !raised) {
    log::warn("run", "{}", raised.error().message);
  }
  auto files = open_files(request.settings, plan.size());
  if (!files) return usage_error(kTool, files.error());
  options.logs = std::move(files->logs);
  auto loop = Loop::make();
  if (!loop) return refuse({Errc::io, loop.error().message});
  const auto settings = request.settings;
  RunMessages messages(**loop, settings, std::move(files->report));
  launcher::JobRunner runner(**loop, std::move(request),
                             [&](const launcher::RunEvent& event) { messages.show(event); });
  messages.follow(runner);
  const auto outcome = runner.run(std::move(plan), std::move(options));
  return outcome ? outcome->exit_code : refuse({Errc::io, outcome.error().message});
}

/// Handles --plan-out and --dry-run. Returns an exit code if nothing is to be run.
std::optional<int> answer_plan(const RunOptions& options, const launcher::JobPlan& plan) {
  if (plan.agents.empty() && (options.dry_run || !options.plan_out.empty())) {
    return refuse({Errc::unavailable, fmt::format("{}; no host is named now, so there is no plan "
                                                  "to show or to save",
                                                  plan.hosts_from)});
  }
  if (!options.plan_out.empty()) {
    const auto written = write_plan_file(options.plan_out, saved_plan_of(plan));
    if (!written) return usage_error(kTool, written.error());
  }
  if (!options.dry_run) return std::nullopt;
  return write_out(options.json ? plan_json(plan) : plan_text(plan)) ? exit_code::kOk
                                                                     : exit_code::kFailure;
}

int run(std::span<const char* const> arguments) {
  open_standard_streams();
  launcher::JobRunnerOptions options{.signals = launcher::SignalPolicy::handle,
                                     .closed_output = closed_output_policy(),
                                     .begin = SteadyClock::instance().now()};
  auto invocation = parse_run(arguments, [](const char* name) { return std::getenv(name); });
  if (!invocation) return usage_error(kTool, invocation.error());
  set_up_log(invocation->settings);
  if (invocation->action == RunAction::explain_config) show(run_warnings(*invocation, environ));
  if (const auto code = answer(*invocation)) return *code;

  auto file = read_plan(*invocation);
  if (!file) return usage_error(kTool, file.error());
  std::error_code no_directory;
  auto directory = std::filesystem::current_path(no_directory).string();
  if (no_directory)
    return refuse({Errc::io, fmt::format("the working directory: {}", no_directory.message())});
  const auto policy = launcher::RestartPolicy::parse(invocation->settings.get(knobs::kMaxRestarts),
                                                     invocation->settings.get(knobs::kRestartOn));
  if (!policy) return usage_error(kTool, policy.error());
  auto request = make_request(*invocation, environ, std::move(directory), std::move(file).value());
  warn_of_settings(*invocation, request);
  std::optional<Result<launcher::JobPlan>> answer_to_request;
  const auto signal = launcher::run_interruptibly([&](int cancel) {
    request.cancel = cancel;
    answer_to_request.emplace(launcher::probe_and_plan(request));
  });
  if (signal) return stop_before_start(*signal, request.settings);
  auto& plan = *answer_to_request;
  if (!plan) return refuse_plan(plan.error());
  // A command that only other hosts run need not exist here.
  if (plan->program_missing && plan->starts.uses_this_machine())
    return refuse(*plan->program_missing);
  show(plan_warnings(*invocation, *plan));
  if (const auto code = answer_plan(invocation->options, *plan)) return *code;
  return run_job(std::move(request), std::move(*plan), std::move(options));
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
