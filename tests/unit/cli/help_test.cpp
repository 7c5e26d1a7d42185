// SPDX-License-Identifier: Apache-2.0
#include "base/cli/help.hpp"

#include <sstream>

#include <catch2/catch.hpp>

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

/// Whether `text` contains `word` as a whole word.
bool shows(const std::string& text, const std::string& word) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char next = text[at + word.size()];
    if (next == ' ' || next == ',' || next == '\n') return true;
  }
  return false;
}

}  // namespace

TEST_CASE("help names every visible flag and every knob") {
  const auto& run = *cli::find_command("run");
  const auto text = cli::help_text(run);
  for (const auto& flag : run.flags) {
    CAPTURE(flag.name);
    const bool shown = shows(text, "--" + flag.name) || shows(text, "--[no-]" + flag.name);
    CHECK(shown == !flag.hidden);
  }
  for (const auto& row : knob_rows()) {
    CAPTURE(row.text->key);
    CHECK(text.find(flag_name(row.text->key)) != std::string::npos);
  }
}

TEST_CASE("help stays within its width") {
  std::istringstream lines(cli::help_text(*cli::find_command("run"), {}, 100));
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
}

TEST_CASE("the help of a knob gives its default, its range and whether this version reads it") {
  const auto& run = *cli::find_command("run");
  const auto help_of = [&run](std::string_view name) {
    for (const auto& flag : run.flags) {
      if (flag.name == name) return cli::flag_help(flag);
    }
    return std::string();
  };
  CHECK(help_of("fusion-threshold") ==
        "largest fused buffer; 0 sends every tensor alone; a size (64MiB, 64M or bytes) from 0 to "
        "1GiB "
        "[default: 64MiB]");
  CHECK(help_of("autotune-gaussian-process-noise")
            .ends_with("[no effect: the autotuner measures the noise]"));
}

TEST_CASE("no two flags of a command share a spelling") {
  for (const auto& command : cli::commands()) {
    std::vector<std::string> names;
    for (const auto& flag : command.flags) {
      names.push_back(flag.name);
      names.insert(names.end(), flag.also.begin(), flag.also.end());
      if (flag.letter != '\0') names.emplace_back(1, flag.letter);
    }
    std::sort(names.begin(), names.end());
    CAPTURE(command.name);
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  }
}

TEST_CASE("the help of horo lists the given commands") {
  const auto text = cli::help_text(*cli::find_command(""), {cli::find_command("run")});
  CHECK(text.find("  run ") != std::string::npos);
  CHECK(text.find("  check-build ") == std::string::npos);
}
