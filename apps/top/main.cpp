// SPDX-License-Identifier: Apache-2.0
// horo top: shows what each rank of a running job is doing.
#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "apps/common/running_job/watch.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kProgram = "top";

int refuse(const Error& error) {
  log::error(kProgram, "{}", timeline::printable(error.message));
  return exit_code::kFailure;
}

int finish(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse(fail_errno(errno, "standard output").take());
}

Result<WatchOptions> read_options(const cli::Arguments& arguments) {
  HORO_TRY(auto options, read_watch_options(arguments));
  options.program = kProgram;
  const auto& jobs = arguments.rest;
  if (jobs.size() > 1)
    return fail(Errc::invalid_argument, "one job is shown, {} are given", jobs.size());
  if (!jobs.empty()) options.target = jobs.front();
  return options;
}

int run(std::span<const char* const> words) {
  const auto& command = *cli::find_command(kProgram);
  const auto usage = [](const Error& error) { return usage_error("horo top", error); };
  const auto arguments = parse_in_any_order(command, words);
  if (!arguments) return usage(arguments.error());
  if (arguments->find("help") != nullptr) return finish(cli::help_text(command));
  if (arguments->find("version") != nullptr) return finish(fmt::format("{}\n", version()));
  const auto options = read_options(*arguments);
  if (!options) return usage(options.error());
  const auto code = watch_ranks(*options);
  return code ? *code : refuse(code.error());
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  horo::apps::allow_many_files();
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
