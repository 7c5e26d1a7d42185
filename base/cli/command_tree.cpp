// SPDX-License-Identifier: Apache-2.0
#include "base/cli/command_tree.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace horo::cli {

namespace {

constexpr const char* kGeneral = "General";
constexpr const char* kHosts = "Ranks and hosts";
constexpr const char* kShown = "View";
constexpr const char* kTrials = "Trials";

std::string metavar(const KnobRow& row) {
  switch (row.kind) {
    case KnobKind::boolean:
      return {};
    case KnobKind::integer:
      return "N";
    case KnobKind::real:
      return "X";
    case KnobKind::bytes:
      return "SIZE";
    case KnobKind::duration:
      return "TIME";
    case KnobKind::text:
      return row.text->unit == "path" ? "PATH" : "TEXT";
    case KnobKind::choice:
      return "WORD";
  }
  return {};
}

std::vector<Flag> knob_flags() {
  std::vector<Flag> flags;
  for (const auto& row : knob_rows()) {
    Flag flag{.name = flag_name(row.text->key),
              .value = metavar(row),
              .group = std::string(row.text->group),
              .help = std::string(row.text->help),
              .negatable = row.kind == KnobKind::boolean,
              .knob = &row};
    // The letters that horovodrun has.
    if (flag.name == "ssh-port") flag.letter = 'p';
    if (flag.name == "ssh-identity-file") flag.letter = 'i';
    if (flag.name == "blacklist-cooldown-range") {
      flag.value = "MIN,MAX";
      flag.joins_numbers = true;
    }
    for (const auto& spelling : row.text->flags) {
      if (!spelling.name.empty()) flag.also.emplace_back(spelling.name);
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<Flag> general_flags() {
  return {
      {.name = "help", .letter = 'h', .group = kGeneral, .help = "print this help and exit"},
      {.name = "version", .letter = 'v', .group = kGeneral, .help = "print the version and exit"}};
}

Flag json_flag(const char* help) {
  return {.name = "json", .group = kGeneral, .help = help};
}

/// Flags that choose the hosts.
std::vector<Flag> host_flags() {
  return {
      {.name = "hosts",
       .letter = 'H',
       .value = "LIST",
       .group = kHosts,
       .help = "hosts, as host:slots,node[01-16]:slots; by default those of the job of Slurm, LSF, "
               "PBS or MPI operator that horo runs in, otherwise this machine"},
      {.name = "hostfile", .value = "FILE", .group = kHosts, .help = "file with one host per line"},
      {.name = "host-discovery-script",
       .value = "COMMAND",
       .group = kHosts,
       .help =
           "program that prints one host per line, run by the shell, so with arguments if it needs "
           "any; it runs when the job starts or restarts, and every second in an elastic job"}};
}

/// The flags of the knobs with these keys.
std::vector<Flag> flags_of(std::initializer_list<std::string_view> keys) {
  auto flags = knob_flags();
  std::erase_if(flags, [&](const Flag& flag) {
    return std::find(keys.begin(), keys.end(), flag.knob->text->key) == keys.end();
  });
  return flags;
}

CommandRow discover_command() {
  CommandRow discover{
      .name = "discover",
      .summary = "print the hosts of a job and their source, and the hardware of this machine",
      .flags = general_flags()};
  discover.flags.push_back(json_flag("print it as JSON"));
  for (auto& flag : host_flags()) discover.flags.push_back(std::move(flag));
  for (auto& flag : flags_of({"slots.per.host", "ranks.per.host", "discovery.timeout"}))
    discover.flags.push_back(std::move(flag));
  return discover;
}

std::vector<Flag> watch_flags() {
  return {
      {.name = "interval",
       .value = "SECONDS",
       .group = kShown,
       .help = "time between two views of a running job; 1 by default"},
      {.name = "once", .group = kShown, .help = "show the ranks of a running job once and exit"},
      {.name = "hosts",
       .value = "HOST,...",
       .group = kShown,
       .help = "look on these hosts too, through ssh; for a job that was not started by horo run"}};
}

/// The form in which a timeline is shown.
std::vector<Flag> timeline_form_flags() {
  return {{.name = "csv", .group = kGeneral, .help = "print the table of ranks as CSV"},
          {.name = "html",
           .value = "FILE",
           .group = kGeneral,
           .help = "write a report for a browser; one page that needs no network"},
          {.name = "export",
           .value = "FORMAT",
           .group = kGeneral,
           .help = "print horo's own timelines as one trace, chrome or perfetto; both formats are "
                   "equal; --rank, --from and --to select a part"},
          {.name = "serve",
           .group = kGeneral,
           .help = "serve the report to browsers on this machine, at an address that is printed"}};
}

/// The part of a timeline, or of a running job, that is shown.
std::vector<Flag> timeline_part_flags() {
  return {
      {.name = "compare",
       .group = kShown,
       .help = "compare two files or folders; the figures of the second are also given as a share "
               "of the first"},
      {.name = "snapshot",
       .value = "JOB",
       .group = kShown,
       .help =
           "save the last moments of a running job, and show them; JOB is the beginning of its id"},
      {.name = "live",
       .value = "JOB",
       .group = kShown,
       .help = "show repeatedly what each rank of a running job is doing, like horo top"},
      {.name = "follow",
       .group = kShown,
       .help =
           "print the figures of a running job, or of a trace that is being written, at intervals"},
      {.name = "rank", .value = "N", .group = kShown, .help = "show only this rank"},
      {.name = "from",
       .value = "SECONDS",
       .group = kShown,
       .help = "leave out what is earlier than this, counted from the first event"},
      {.name = "to",
       .value = "SECONDS",
       .group = kShown,
       .help = "leave out what is later than this, counted from the first event"},
      {.name = "top",
       .value = "N",
       .group = kShown,
       .help = "number of slowest operations that are listed; 10 by default"}};
}

CommandRow timeline_command() {
  CommandRow view{.name = "timeline-view",
                  .summary = "analyse a timeline: late ranks, exposed communication, bandwidth",
                  .tail = "FILE...",
                  .flags = general_flags()};
  view.flags.push_back(json_flag("print the figures as JSON"));
  for (auto& flag : timeline_form_flags()) view.flags.push_back(std::move(flag));
  for (auto& flag : timeline_part_flags()) view.flags.push_back(std::move(flag));
  for (auto& flag : watch_flags()) view.flags.push_back(std::move(flag));
  return view;
}

CommandRow top_command() {
  CommandRow top{.name = "top",
                 .summary = "show what each rank of a running job is doing",
                 .tail = "[JOB]",
                 .flags = general_flags()};
  top.flags.push_back(json_flag("print each view as a line of JSON"));
  for (auto& flag : watch_flags()) top.flags.push_back(std::move(flag));
  return top;
}

/// `horo shrink` and `horo grow`.
CommandRow resize_command(std::string name, std::string summary) {
  CommandRow command{.name = std::move(name),
                     .summary = std::move(summary),
                     .tail = "[JOB] HOST[:SLOTS]",
                     .flags = general_flags()};
  command.flags.push_back(
      {.name = "dry-run", .group = kGeneral, .help = "only say what would happen"});
  return command;
}

/// Flags of `horo tune` that read a log, or show what was measured.
std::vector<Flag> tune_view_flags() {
  return {{.name = "log",
           .value = "FILE",
           .group = kShown,
           .help = "read the log of an autotuner, Horo's (--autotune-log-file) or Horovod's "
                   "(HOROVOD_AUTOTUNE_LOG), instead of running a command"},
          {.name = "simulate",
           .value = "FILE",
           .group = kShown,
           .help = "predict the best settings on the cluster that this YAML file describes, with a "
                   "training, instead of running a command"},
          {.name = "html",
           .value = "FILE",
           .group = kShown,
           .help = "write a report for a browser, with the curve of the best so far and the "
                   "response surface; one page that needs no network"}};
}

/// Flags of `horo tune` about what searches of earlier jobs have found.
std::vector<Flag> kept_flags() {
  return {{.name = "list",
           .group = kShown,
           .help = "show what searches have found and what the next jobs begin with; also as JSON"},
          {.name = "forget",
           .value = "N",
           .group = kShown,
           .help = "forget the result with this number in --list, or all of them: all"},
          {.name = "export",
           .value = "FILE",
           .group = kShown,
           .help = "write these results to a JSON file"}};
}

/// Which trials are made.
std::vector<Flag> trial_flags() {
  return {
      {.name = "budget",
       .value = "TIME",
       .group = kTrials,
       .help = "time for all trials, like 5m; then the search ends with what it knows"},
      {.name = "online",
       .group = kTrials,
       .help = "try settings in one run, while the program trains; by default restarts follow "
               "if the program ends too soon for that"},
      {.name = "restart", .group = kTrials, .help = "start the command once for each trial"},
      {.name = "trials",
       .value = "N",
       .group = kTrials,
       .help = "most restarts; 42 by default, of which 16 may be turns that confirm the best"},
      {.name = "failures",
       .value = "N",
       .group = kTrials,
       .help = "stop after so many failed trials in a row; 3 by default"},
      {.name = "space",
       .value = "FILE",
       .group = kTrials,
       .help = "YAML file with variables and arguments of mpirun that join the search, with "
               "restarts"},
  };
}

/// How each trial runs, and what becomes of the result.
std::vector<Flag> trial_run_flags() {
  return {{.name = "wall-time",
           .group = kTrials,
           .help = "compare how long the command takes, instead of the bytes per second that the "
                   "runtime measures"},
          {.name = "whole-runs",
           .group = kTrials,
           .help = "let each run end by itself; by default it is stopped when it is measured"},
          {.name = "resume",
           .value = "FILE",
           .group = kTrials,
           .help = "save the search in this file after each trial, and continue the search that "
                   "it holds"},
          {.name = "config-out",
           .value = "FILE",
           .group = kTrials,
           .help = "write the setting to keep to this config file for horo run; by default "
                   "horo-tuned.yaml, if a setting beats the default"},
          {.name = "dry-run",
           .group = kGeneral,
           .help = "print what would be tried and start nothing"}};
}

/// Flags of `horo run` about its configuration and its plan.
std::vector<Flag> run_flags() {
  return {{.name = "config-file",
           .value = "FILE",
           .group = kGeneral,
           .help = "config file in YAML; HORO_CONFIG_FILE names one too"},
          {.name = "horovod",
           .group = kGeneral,
           .help = "behave like horovodrun: the config file has priority over the environment, and "
                   "Python's `import horovod` gives Horo"},
          {.name = "plan",
           .value = "FILE",
           .group = kHosts,
           .help = "run the plan in this file; without COMMAND, the command in the file"},
          {.name = "plan-out",
           .value = "FILE",
           .group = kHosts,
           .help = "write the plan to this file, with or without --dry-run"},
          {.name = "dry-run", .group = kGeneral, .help = "print the plan and start nothing"},
          json_flag("print the plan, the knobs or the build table as JSON"),
          {.name = "explain-config",
           .group = kGeneral,
           .help = "print every knob, its value and the origin of the value"},
          {.name = "check-build",
           .also = {"cb"},
           .group = kGeneral,
           .help = "print what this build can do here, and exit"}};
}

/// Other programs that may start the ranks, and flags of horovodrun that have no effect here.
std::vector<Flag> mpi_flags() {
  return {{.name = "mpi",
           .group = kHosts,
           .help = "let mpirun start the ranks, for programs that call MPI and for clusters that "
                   "support only mpirun"},
          {.name = "jsrun",
           .group = kHosts,
           .help = "let jsrun start the ranks, in an LSF job whose hosts were allocated by CSM"},
          {.name = "gloo",
           .group = kHosts,
           .help = "accepted from horovodrun; it only excludes --mpi and --jsrun",
           .hidden = true},
          {.name = "disable-cache",
           .group = kHosts,
           .help = "accepted from horovodrun; no effect",
           .hidden = true}};
}

CommandRow run_command() {
  CommandRow run{.name = "run",
                 .summary = "start a command as the ranks of one job",
                 .tail = "COMMAND [ARG...]",
                 .flags = general_flags()};
  const auto add = [&run](std::vector<Flag> flags) {
    run.flags.insert(run.flags.end(), std::make_move_iterator(flags.begin()),
                     std::make_move_iterator(flags.end()));
  };
  add({{.name = "num-proc",
        .also = {"np"},
        .letter = 'n',
        .value = "N",
        .group = kHosts,
        .help = "start N ranks; by default as many as the hosts have slots"}});
  add(host_flags());
  add(run_flags());
  add(mpi_flags());
  add(knob_flags());
  return run;
}

CommandRow tune_command() {
  // Options of `horo run` that print something, and those that `horo tune` has itself.
  constexpr std::string_view kLeftOut[] = {"help",     "version",        "json",       "dry-run",
                                           "plan-out", "explain-config", "check-build"};
  CommandRow tune{.name = "tune",
                  .summary = "find the fastest settings for a job, or read an autotuner's log",
                  .tail = "COMMAND [ARG...]",
                  .flags = general_flags()};
  tune.flags.push_back(json_flag("print the result as JSON"));
  for (auto& flag : tune_view_flags()) tune.flags.push_back(std::move(flag));
  for (auto& flag : kept_flags()) tune.flags.push_back(std::move(flag));
  for (auto& flag : trial_flags()) tune.flags.push_back(std::move(flag));
  for (auto& flag : trial_run_flags()) tune.flags.push_back(std::move(flag));
  for (auto& flag : run_command().flags) {
    if (std::find(std::begin(kLeftOut), std::end(kLeftOut), flag.name) == std::end(kLeftOut))
      tune.flags.push_back(std::move(flag));
  }
  return tune;
}

std::vector<CommandRow> build() {
  CommandRow check{
      .name = "check-build",
      .summary = "print what this build can do here, and the reason for what it cannot do",
      .flags = general_flags()};
  check.flags.push_back(json_flag("print the table as JSON"));
  check.flags.push_back({.name = "horovod",
                         .group = kGeneral,
                         .help = "print the table in the form of horovodrun --check-build"});
  return {{.name = "",
           .summary = "launcher and collectives runtime for distributed training",
           .tail = "COMMAND [ARG...]",
           .flags = general_flags()},
          run_command(),
          std::move(check),
          discover_command(),
          timeline_command(),
          top_command(),
          resize_command("shrink", "take a host, or some of its slots, away from an elastic job"),
          resize_command("grow", "give an elastic job a host, or more slots of a host"),
          tune_command()};
}

}  // namespace

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> all = build();
  return all;
}

const CommandRow* find_command(std::string_view name) {
  const auto& all = commands();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const CommandRow& c) { return c.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace horo::cli
