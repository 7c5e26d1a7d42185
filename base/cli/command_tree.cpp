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
    // As horovodrun has them.
    if (flag.name == "ssh-port") flag.letter = 'p';
    if (flag.name == "ssh-identity-file") flag.letter = 'i';
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

/// Options of horovodrun whose feature is missing: a reason serves better than "unknown option".
std::vector<Flag> refused_flags() {
  const std::string fixed =
      "there are no elastic jobs in this version; give the number of ranks with -np";
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows{
      {{"min-np", "min-num-proc"}, fixed},   {{"max-np", "max-num-proc"}, fixed},
      {{"elastic-timeout"}, fixed},          {{"reset-limit"}, fixed},
      {{"blacklist-cooldown-range"}, fixed},
  };
  std::vector<Flag> flags;
  for (const auto& [names, reason] : rows) {
    Flag flag{.name = names.front(),
              .also = {names.begin() + 1, names.end()},
              .hidden = true,
              .refusal = reason};
    flags.push_back(std::move(flag));
  }
  return flags;
}

/// Where ranks may run.
std::vector<Flag> host_flags() {
  return {
      {.name = "hosts",
       .letter = 'H',
       .value = "LIST",
       .group = kHosts,
       .help = "where: host:slots,node[01-16]:slots; without it the job of Slurm, LSF, PBS or MPI "
               "operator "
               "that this is, or this machine"},
      {.name = "hostfile",
       .value = "FILE",
       .group = kHosts,
       .help = "where: a file with one host per line"},
      {.name = "host-discovery-script",
       .value = "FILE",
       .group = kHosts,
       .help = "where: what this program prints, one host per line; asked once, at the start"}};
}

/// The flags of the knobs with these keys.
std::vector<Flag> flags_of(std::initializer_list<std::string_view> keys) {
  auto flags = knob_flags();
  std::erase_if(flags, [&](const Flag& flag) {
    return std::find(keys.begin(), keys.end(), flag.knob->text->key) == keys.end();
  });
  return flags;
}

Command discover_command() {
  Command discover{.name = "discover",
                   .summary = "print the hosts of a job, who names them, and what this machine has",
                   .flags = general_flags()};
  discover.flags.push_back(json_flag("print it as JSON"));
  for (auto& flag : host_flags()) discover.flags.push_back(std::move(flag));
  for (auto& flag : flags_of({"slots.per.host", "ranks.per.host", "discovery.timeout"}))
    discover.flags.push_back(std::move(flag));
  return discover;
}

std::vector<Flag> watch_flags() {
  return {{.name = "interval",
           .value = "SECONDS",
           .group = "What is shown",
           .help = "between two views of a job that runs; 1 without it"},
          {.name = "once",
           .group = "What is shown",
           .help = "one view of the ranks of a job that runs"},
          {.name = "hosts",
           .value = "HOST,...",
           .group = "What is shown",
           .help = "look on these hosts too, through ssh: of a job that no horo run has started"}};
}

Command timeline_command() {
  constexpr const char* kWhat = "What is shown";
  Command view{.name = "timeline-view",
               .summary = "say what a timeline shows: who is late, what is exposed, how fast",
               .tail = "FILE...",
               .flags = general_flags()};
  view.flags.push_back(json_flag("print the figures as JSON"));
  const std::vector<Flag> own{
      {.name = "csv", .group = kGeneral, .help = "print the table of ranks as CSV"},
      {.name = "html",
       .value = "FILE",
       .group = kGeneral,
       .help = "write a report for a browser: one page, which needs no network"},
      {.name = "export",
       .value = "FORMAT",
       .group = kGeneral,
       .help = "print horo's own timelines, or what --rank, --from and --to choose, as one trace: "
               "chrome or perfetto, which read the same"},
      {.name = "serve",
       .group = kGeneral,
       .help = "show the report to browsers on this machine, at an address that is printed"},
      {.name = "compare",
       .group = kWhat,
       .help = "put two files or folders beside each other, the second as a share of the first"},
      {.name = "snapshot",
       .value = "JOB",
       .group = kWhat,
       .help = "save the last moments of a job that runs, and show them; JOB is the beginning of "
               "its id"},
      {.name = "live",
       .value = "JOB",
       .group = kWhat,
       .help = "what each rank of a job that runs is doing, again and again: horo top"},
      {.name = "follow",
       .group = kWhat,
       .help = "figures of a job that runs, or of a trace that is being written, as they come"},
      {.name = "rank", .value = "N", .group = kWhat, .help = "this rank alone"},
      {.name = "from",
       .value = "SECONDS",
       .group = kWhat,
       .help = "from so long after the first event on"},
      {.name = "to", .value = "SECONDS", .group = kWhat, .help = "up to then"},
      {.name = "top",
       .value = "N",
       .group = kWhat,
       .help = "how many of the slowest operations are listed; 10 without it"}};
  view.flags.insert(view.flags.end(), own.begin(), own.end());
  for (auto& flag : watch_flags()) view.flags.push_back(std::move(flag));
  return view;
}

Command top_command() {
  Command top{.name = "top",
              .summary = "show what each rank of a running job is doing",
              .tail = "[JOB]",
              .flags = general_flags()};
  top.flags.push_back(json_flag("print each view as a line of JSON"));
  for (auto& flag : watch_flags()) top.flags.push_back(std::move(flag));
  return top;
}

Command run_command() {
  Command run{.name = "run",
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
        .help = "start N ranks; without it, as many as the hosts have slots"}});
  add(host_flags());
  add({{.name = "config-file",
        .value = "FILE",
        .group = kGeneral,
        .help = "knobs in YAML; also from HORO_CONFIG_FILE"},
       {.name = "horovod",
        .group = kGeneral,
        .help = "as horovodrun: the config file beats the environment, and Python's `import "
                "horovod` gives Horo"},
       {.name = "plan",
        .value = "FILE",
        .group = kHosts,
        .help = "run the plan of this file; without a COMMAND the file's"},
       {.name = "plan-out",
        .value = "FILE",
        .group = kHosts,
        .help = "write the plan to this file, with --dry-run or for the record"},
       {.name = "dry-run", .group = kGeneral, .help = "print the plan and start nothing"},
       json_flag("print the plan, the knobs or the build table as JSON"),
       {.name = "explain-config",
        .group = kGeneral,
        .help = "print every knob, its value and where it came from"},
       {.name = "check-build",
        .also = {"cb"},
        .group = kGeneral,
        .help = "print what this build can do here, and exit"},
       {.name = "mpi",
        .group = kHosts,
        .help = "let mpirun start the ranks, for programs that call MPI and clusters that know "
                "nothing else"},
       {.name = "jsrun",
        .group = kHosts,
        .help = "let jsrun start the ranks, in a job of LSF whose hosts CSM allocates"},
       {.name = "gloo",
        .group = kHosts,
        .help = "accepted from horovodrun; no effect, but against --mpi and --jsrun",
        .hidden = true},
       {.name = "disable-cache",
        .group = kHosts,
        .help = "accepted from horovodrun; no effect",
        .hidden = true}});
  add(knob_flags());
  add(refused_flags());
  return run;
}

std::vector<Command> build() {
  Command check{.name = "check-build",
                .summary = "print what this build can do here, and why not",
                .flags = general_flags()};
  check.flags.push_back(json_flag("print the table as JSON"));
  return {{.name = "",
           .summary = "launcher and collectives runtime for distributed training",
           .tail = "COMMAND [ARG...]",
           .flags = general_flags()},
          run_command(),
          std::move(check),
          discover_command(),
          timeline_command(),
          top_command()};
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = build();
  return all;
}

const Command* find_command(std::string_view name) {
  const auto& all = commands();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Command& c) { return c.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace horo::cli
