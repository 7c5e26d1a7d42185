// SPDX-License-Identifier: Apache-2.0
// horo tune: finds the fastest settings for a job, or reads the log of an autotuner.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "apps/common/replace_file.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/tune/kept/kept_results.hpp"
#include "apps/tune/record/read_tune_log.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/tune_command.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knobs.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

int finish(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse_tuning(fail_errno(errno, "standard output").take());
}

/// Fails where the report would overwrite the log.
Status check_report_path(const std::string& page, const std::string& log) {
  std::error_code error;
  if (std::filesystem::is_regular_file(page, error) &&
      std::filesystem::equivalent(page, log, error))
    return fail(Errc::invalid_argument, "--html would overwrite the log '{}'", log);
  return {};
}

int show_log(const cli::Arguments& arguments, const std::string& path) {
  if (!arguments.rest.empty()) {
    return usage_error("horo tune", {Errc::invalid_argument,
                                     fmt::format("--log reads a file and runs no command; '{}' has "
                                                 "no place here",
                                                 arguments.rest.front())});
  }
  const auto* page = arguments.find("html");
  if (page != nullptr) {
    if (const auto checked = check_report_path(page->value, path); !checked)
      return refuse_tuning(checked.error());
  }
  const auto record = read_tune_log(path);
  if (!record) return refuse_tuning(record.error());
  for (const auto& warning : record->warnings) log::warn("tune", "{}", printable(warning));
  auto summary = summarise(*record);
  // The best of Horovod's settings is not Horo's best, and some of its switches do not exist here.
  if (const auto keep = setting_to_keep(*record); keep && record->kind == TuneSource::horo_log)
    summary.keep_command = command_to_keep(words_of_log(*record, *keep));
  return show_result(*record, summary,
                     {.json = arguments.find("json") != nullptr,
                      .html = page == nullptr ? std::string() : page->value});
}

/// The cluster's file says everything else.
Status check_simulate_options(const cli::Arguments& arguments) {
  for (const auto& option : arguments.options) {
    const auto& name = option.flag->name;
    const std::string_view known[] = {"simulate", "json", "html", "config-out"};
    if (std::find(std::begin(known), std::end(known), name) != std::end(known)) continue;
    return fail(Errc::invalid_argument,
                "--simulate takes only --json, --html and --config-out; '--{}' has no effect on a "
                "prediction",
                name);
  }
  return {};
}

int simulate(const cli::Arguments& arguments, const std::string& cluster) {
  if (!arguments.rest.empty()) {
    return usage_error(
        "horo tune",
        {Errc::invalid_argument, fmt::format("--simulate runs no command; '{}' has no place here",
                                             arguments.rest.front())});
  }
  if (const auto checked = check_simulate_options(arguments); !checked)
    return usage_error("horo tune", checked.error());
  const auto text = [&](std::string_view flag) {
    const auto* option = arguments.find(flag);
    return option == nullptr ? std::string() : option->value;
  };
  return tune_simulated(cluster, text("config-out"),
                        {.json = arguments.find("json") != nullptr, .html = text("html")});
}

/// Shows, writes or forgets the kept results.
Result<std::string> answer_about_kept(const cli::Arguments& arguments) {
  const auto lookup = [](const char* name) { return std::getenv(name); };
  HORO_TRY(const auto settings, settings_of_tune(arguments, lookup));
  HORO_TRY(const auto folder, folder_of_results(settings.get(knobs::kAutotuneMemory), lookup));
  runtime::tuning::TuningStore store(folder);
  runtime::tuning::UnfinishedStore searches(folder);
  if (const auto* which = arguments.find("forget"); which != nullptr)
    return forget_results(store, searches, which->value);
  HORO_TRY(const auto results, store.list());
  const auto* file = arguments.find("export");
  if (file != nullptr) {
    HORO_TRY_STATUS(replace_file(file->value, runtime::tuning::to_json(results)));
    return fmt::format("{} written to {}\n",
                       results.size() == 1 ? "1 result" : fmt::format("{} results", results.size()),
                       printable(file->value));
  }
  if (arguments.find("json") != nullptr) return runtime::tuning::to_json(results);
  return kept_results_text(results, store.path());
}

int show_kept(const cli::Arguments& arguments) {
  int asked = 0;
  for (const auto* flag : {"list", "forget", "export", "log", "simulate"})
    asked += arguments.find(flag) != nullptr ? 1 : 0;
  if (asked > 1 || !arguments.rest.empty()) {
    return usage_error(
        "horo tune",
        {Errc::invalid_argument,
         "--list, --forget, --export, --log, --simulate and a command exclude each other"});
  }
  const auto text = answer_about_kept(arguments);
  if (text) return finish(*text);
  return text.error().code == Errc::invalid_argument ? usage_error("horo tune", text.error())
                                                     : refuse_tuning(text.error());
}

int run(std::span<const char* const> words) {
  const auto& command = *cli::find_command("tune");
  const auto arguments = cli::parse_arguments(command, words);
  if (!arguments) return usage_error("horo tune", arguments.error());
  if (arguments->find("help") != nullptr) return finish(cli::help_text(command));
  if (arguments->find("version") != nullptr) return finish(fmt::format("{}\n", version()));
  for (const auto* flag : {"list", "forget", "export"}) {
    if (arguments->find(flag) != nullptr) return show_kept(*arguments);
  }
  if (const auto* cluster = arguments->find("simulate"); cluster != nullptr)
    return simulate(*arguments, cluster->value);
  if (const auto* log = arguments->find("log"); log != nullptr)
    return show_log(*arguments, log->value);
  const auto request =
      read_tune_request(*arguments, [](const char* name) { return std::getenv(name); });
  return request ? tune_command(*request) : usage_error("horo tune", request.error());
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
