// SPDX-License-Identifier: Apache-2.0
#include "apps/common/run_invocation.hpp"

#include <utility>

#include "apps/common/config_file.hpp"
#include "apps/common/run_options.hpp"
#include "base/cli/arguments.hpp"
#include "base/knobs/controller.hpp"

namespace horo::apps {

namespace {

constexpr const char* kConfigVariable = "HORO_CONFIG_FILE";

/// horovodrun's key `controller` is not a knob: it means --mpi or not.
Status take_controller(std::vector<Given>& config, RunOptions& options) {
  for (auto given = config.begin(); given != config.end(); ++given) {
    if (given->name != "controller") continue;
    HORO_TRY_STATUS(check_controller(given->value, fmt::format("config {}", given->place)));
    if (!options.gloo && !options.jsrun)
      options.mpi = options.mpi || is_mpi_controller(given->value);
    config.erase(given);
    return {};
  }
  return {};
}

}  // namespace

Result<RunInvocation> parse_run(std::span<const char* const> arguments,
                                const std::function<const char*(const char*)>& lookup) {
  HORO_TRY(const auto parsed, cli::parse_arguments(*cli::find_command("run"), arguments));
  HORO_TRY(auto head, read_run_head(parsed));
  RunInvocation invocation{
      .action = head.action, .options = std::move(head.options), .settings = {}};
  if (head.action == RunAction::help || head.action == RunAction::version) return invocation;

  Sources sources{.environment = lookup, .like_horovodrun = invocation.options.horovod};
  std::string file = std::move(head.config_file);
  if (const char* text = lookup(kConfigVariable); file.empty() && text != nullptr) file = text;
  if (!file.empty()) {
    HORO_TRY(sources.config, read_config_file(file));
    HORO_TRY_STATUS(take_controller(sources.config, invocation.options));
  }
  std::string interfaces;
  for (const auto& option : parsed.options) {
    if (option.flag->knob == nullptr) continue;
    auto value = option.value;
    // The only flag that adds to earlier ones instead of replacing them.
    if (option.flag->knob->text->key == knobs::kNetworkInterfaces.text.key) {
      interfaces += (interfaces.empty() ? "" : ",") + value;
      value = interfaces;
    }
    sources.flags.push_back({option.name, std::move(value), {}});
  }
  HORO_TRY_STATUS(check_controllers(lookup));
  HORO_TRY(invocation.settings, Settings::resolve(sources));
  return invocation;
}

}  // namespace horo::apps
