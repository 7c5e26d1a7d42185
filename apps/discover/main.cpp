// SPDX-License-Identifier: Apache-2.0
// horo discover prints the hosts of a job, their source, and the hardware of this machine.
#include <cstdlib>
#include <optional>
#include <span>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/discover/survey.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/settings.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/run/interruptible.hpp"

namespace horo::apps {

namespace {

constexpr const char* kTool = "horo discover";

const char* lookup(const char* name) {
  return std::getenv(name);
}

std::string value_of(const cli::Arguments& arguments, std::string_view flag) {
  const auto* option = arguments.find(flag);
  return option == nullptr ? std::string() : option->value;
}

Result<discovery::HostRequest> read_request(const cli::Arguments& arguments) {
  int given = 0;
  for (const auto* flag : {"hosts", "hostfile", "host-discovery-script"}) {
    const auto* option = arguments.find(flag);
    if (option == nullptr) continue;
    if (option->value.empty()) return fail(Errc::invalid_argument, "option '--{}' is empty", flag);
    if (++given > 1) {
      return fail(Errc::invalid_argument,
                  "--hosts, --hostfile and --host-discovery-script exclude each other");
    }
  }
  Sources sources{.environment = lookup};
  for (const auto& option : arguments.options) {
    if (option.flag->knob != nullptr) sources.flags.push_back({option.name, option.value, {}});
  }
  HORO_TRY(const auto settings, Settings::resolve(sources));
  const int per_host = settings.get(knobs::kRanksPerHost);
  return discovery::HostRequest{
      .list = value_of(arguments, "hosts"),
      .hostfile = value_of(arguments, "hostfile"),
      .script = value_of(arguments, "host-discovery-script"),
      .default_slots = per_host != 0 ? per_host : settings.get(knobs::kSlotsPerHost),
      .ranks_per_host = per_host,
      .here_slots = per_host != 0 ? per_host : discovery::usable_cores(),
      .timeout = settings.get(knobs::kDiscoveryTimeout),
      .environment = lookup};
}

int discover(const cli::Arguments& arguments) {
  auto request = read_request(arguments);
  if (!request) return usage_error(kTool, request.error());
  std::optional<Result<Survey>> answer;
  const auto signal = launcher::run_interruptibly([&](int cancel) {
    request->cancel = cancel;
    answer.emplace(survey(*request));
  });
  if (signal) return exit_code::kSignalBase + *signal;
  const auto& found = *answer;
  if (!found) {
    const auto code = found.error().code;
    if (code != Errc::unavailable && code != Errc::timed_out)
      return usage_error(kTool, found.error());
    log::error("discover", "{}", found.error().message);
    return exit_code::kFailure;
  }
  const bool as_json = arguments.find("json") != nullptr;
  const bool written = write_out(as_json ? survey_json(*found) : survey_text(*found));
  return written && found->whole() ? exit_code::kOk : exit_code::kFailure;
}

int run(std::span<const char* const> words) {
  const auto& command = *cli::find_command("discover");
  const auto arguments = cli::parse_arguments(command, words);
  if (!arguments) return usage_error(kTool, arguments.error());
  std::string text;
  if (arguments->find("help") != nullptr) text = cli::help_text(command);
  if (text.empty() && arguments->find("version") != nullptr) text = fmt::format("{}\n", version());
  if (text.empty()) return discover(*arguments);
  return write_out(text) ? exit_code::kOk : exit_code::kFailure;
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
