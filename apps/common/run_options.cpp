// SPDX-License-Identifier: Apache-2.0
#include "apps/common/run_options.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <CLI/CLI.hpp>

namespace horo::apps {

namespace {

/// A check in CLI11's form: returns what is wrong, or an empty text.
std::string check_ranks(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && rest == end && value >= 1 && value <= kMostRanks) return {};
  return fmt::format("'{}' must be a whole number from 1 to {}", text, kMostRanks);
}

struct Switches {
  bool help = false;
  bool version = false;
  bool explain = false;
  bool check_build = false;
};

/// The options that are not knobs, in the form that CLI11 reads: last one first.
Result<std::vector<std::string>> canonical(const cli::Arguments& arguments) {
  std::vector<std::string> words;
  for (const auto& option : arguments.options) {
    if (option.flag->knob != nullptr) continue;
    if (option.value.empty())
      return fail(Errc::invalid_argument, "option '--{}' is empty", option.name);
    words.push_back(option.flag->value.empty()
                        ? fmt::format("--{}", option.flag->name)
                        : fmt::format("--{}={}", option.flag->name, option.value));
  }
  std::reverse(words.begin(), words.end());
  return words;
}

RunAction action_of(const Switches& switches) {
  if (switches.help) return RunAction::help;
  if (switches.version) return RunAction::version;
  if (switches.check_build) return RunAction::check_build;
  return switches.explain ? RunAction::explain_config : RunAction::run;
}

}  // namespace

Result<RunHead> read_run_head(const cli::Arguments& arguments) {
  HORO_TRY(auto words, canonical(arguments));
  RunHead head;
  Switches switches;
  int np = 0;
  try {
    CLI::App app;
    app.set_help_flag();
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_flag("--help", switches.help);
    app.add_flag("--version", switches.version);
    app.add_flag("--explain-config", switches.explain);
    app.add_flag("--check-build", switches.check_build);
    app.add_flag("--dry-run", head.options.dry_run);
    app.add_flag("--json", head.options.json);
    app.add_flag("--horovod", head.options.horovod);
    app.add_flag("--disable-cache");
    auto* gloo = app.add_flag("--gloo", head.options.gloo);
    auto* mpi = app.add_flag("--mpi", head.options.mpi)->excludes(gloo);
    app.add_flag("--jsrun", head.options.jsrun)->excludes(gloo)->excludes(mpi);
    auto* ranks = app.add_option("--num-proc", np)->check(CLI::Validator(check_ranks, ""));
    app.add_option("--config-file", head.config_file);
    auto* hosts = app.add_option("--hosts", head.options.hosts);
    auto* file = app.add_option("--hostfile", head.options.hostfile)->excludes(hosts);
    auto* script = app.add_option("--host-discovery-script", head.options.script);
    script->excludes(hosts)->excludes(file);
    auto* plan = app.add_option("--plan", head.options.plan);
    plan->excludes(ranks)->excludes(hosts)->excludes(file)->excludes(script);
    app.add_option("--plan-out", head.options.plan_out);
    app.parse(std::move(words));
  } catch (const CLI::Error& error) {
    return fail(Errc::invalid_argument, "{}", error.what());
  }
  head.action = action_of(switches);
  head.options.command = arguments.rest;
  if (np != 0) head.options.np = np;
  if (head.action != RunAction::run) return head;
  if (head.options.command.empty() && head.options.plan.empty())
    return fail(Errc::invalid_argument, "no command to run is given");
  return head;
}

}  // namespace horo::apps
