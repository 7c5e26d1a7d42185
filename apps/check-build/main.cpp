// SPDX-License-Identifier: Apache-2.0
// horo check-build prints what this build can do here, and the reason for what it cannot do.
#include <span>

#include <fmt/format.h>

#include "apps/check-build/horovod_table.hpp"
#include "apps/check-build/probes.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/json.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

constexpr const char* kTool = "horo check-build";

std::string as_text(const std::vector<Finding>& findings) {
  std::string text = fmt::format("horo {}\n", version());
  std::string_view section;
  for (const auto& finding : findings) {
    if (finding.section != section) text += fmt::format("\n{}:\n", finding.section);
    section = finding.section;
    text += fmt::format("    [{}] {:<12} {}\n", finding.available ? 'X' : ' ', finding.name,
                        finding.detail);
  }
  return text;
}

std::string as_json(const std::vector<Finding>& findings) {
  JsonWriter writer;
  writer.begin_object().key("version").value(version()).key("findings").begin_array();
  for (const auto& finding : findings) {
    writer.begin_object();
    writer.key("section").value(finding.section);
    writer.key("name").value(finding.name);
    writer.key("available").value(finding.available);
    writer.key("detail").value(finding.detail);
    writer.end_object();
  }
  writer.end_array().end_object();
  return writer.text() + "\n";
}

std::string answer(const cli::CommandRow& command, const cli::Arguments& arguments) {
  if (arguments.find("help") != nullptr) return cli::help_text(command);
  if (arguments.find("version") != nullptr) return fmt::format("{}\n", version());
  const auto findings = probe_build();
  if (arguments.find("json") != nullptr) return as_json(findings);
  return arguments.find("horovod") != nullptr ? horovod_table(findings) : as_text(findings);
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const auto& command = *horo::cli::find_command("check-build");
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  const auto arguments = horo::cli::parse_arguments(command, words.subspan(words.empty() ? 0 : 1));
  if (!arguments) return horo::apps::usage_error(horo::apps::kTool, arguments.error());
  return horo::apps::write_out(horo::apps::answer(command, *arguments)) ? horo::exit_code::kOk
                                                                        : horo::exit_code::kFailure;
}
