// SPDX-License-Identifier: Apache-2.0
// horo tune: finds the fastest settings for a job, or reads the log of an autotuner.
#include <cerrno>
#include <filesystem>
#include <span>
#include <string>

#include "apps/common/replace_file.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/tune/record/read_tune_log.hpp"
#include "apps/tune/record/summary_views.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

int refuse(const Error& error) {
  log::error("tune", "{}", printable(error.message));
  return exit_code::kFailure;
}

int finish(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse(fail_errno(errno, "standard output").take());
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
  const auto record = read_tune_log(path);
  if (!record) return refuse(record.error());
  for (const auto& warning : record->warnings) log::warn("tune", "{}", printable(warning));
  const auto summary = summarise(*record);
  if (const auto* page = arguments.find("html"); page != nullptr) {
    const auto checked = check_report_path(page->value, path);
    if (!checked) return refuse(checked.error());
    const auto written = replace_file(page->value, summary_page(*record, summary));
    if (!written) return refuse(written.error());
  }
  return finish(arguments.find("json") != nullptr ? summary_json(*record, summary)
                                                  : summary_text(*record, summary));
}

int run(std::span<const char* const> words) {
  const auto& command = *cli::find_command("tune");
  const auto arguments = cli::parse_arguments(command, words);
  if (!arguments) return usage_error("horo tune", arguments.error());
  if (arguments->find("help") != nullptr) return finish(cli::help_text(command));
  if (arguments->find("version") != nullptr) return finish(fmt::format("{}\n", version()));
  if (const auto* log = arguments->find("log"); log != nullptr)
    return show_log(*arguments, log->value);
  return usage_error("horo tune", {Errc::invalid_argument, "no log is given; write --log FILE"});
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
