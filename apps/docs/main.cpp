// SPDX-License-Identifier: Apache-2.0
// horo-docs PAGE writes a generated page of the manual to standard output. It reads the headers,
// and through a script the Python package, from the source tree in which it was built.
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/docs/completions.hpp"
#include "apps/docs/header_page.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/knob_table.hpp"
#include "base/knobs/value.hpp"

namespace horo::apps {

namespace {

/// In the order of the page: most used first.
constexpr std::array<std::string_view, 9> kCppHeaders{
    "horo/horo.hpp",        "horo/job.hpp",     "horo/tensor.hpp",
    "horo/op.hpp",          "horo/elastic.hpp", "horo/shared_buffer.hpp",
    "horo/process_set.hpp", "horo/element.hpp", "horo/error.hpp"};

/// The first comment of every page, which says that it must not be edited by hand.
std::string head(std::string_view page) {
  return fmt::format(
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
      "<!-- Generated: horo-docs {0} > docs/reference/{0}.md -->\n",
      page);
}

/// `text` for a cell of a table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

std::string with_scale(const Spelling& spelling) {
  std::string text = code(spelling.name);
  if (spelling.scale != 1) text += " (in MiB)";
  if (spelling.inverted) text += " (inverted)";
  return text;
}

std::string also(const KnobText& knob) {
  std::vector<std::string> names;
  for (auto spelling : knob.flags) {
    if (spelling.name.empty()) continue;
    const auto flag = fmt::format("--{}", spelling.name);
    spelling.name = flag;
    names.push_back(with_scale(spelling));
  }
  if (!knob.variable.name.empty()) names.push_back(with_scale(knob.variable));
  if (!knob.config.name.empty()) names.push_back(with_scale(knob.config));
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : "<br>") + name;
  return text;
}

std::string meaning(const KnobRow& row) {
  std::string text(row.text->help);
  if (row.tunable) text += " (tunable)";
  if (row.text->reader == KnobReader::launcher) text += "; for the launcher only";
  if (!row.text->inert.empty()) text += fmt::format("; **no effect: {}**", row.text->inert);
  return text;
}

std::string knobs_page() {
  std::string text = head("knobs");
  text +=
      "\n# Knobs\n\n"
      "Each knob has one key, and its names follow from it: `fusion.threshold` is the flag "
      "`--fusion-threshold`,\nthe variable `HORO_FUSION_THRESHOLD` and in a config file\n\n"
      "```yaml\nfusion:\n  threshold: 64MiB\n```\n\n"
      "A flag has priority over the environment (`HORO_*` over `HOROVOD_*`), the environment over "
      "the config "
      "file, the file\n"
      "over the default; with `--horovod` the file has priority over the environment. `horo run "
      "--explain-config` prints every\n"
      "value and the origin of the value. A wrong value or an unknown key ends with exit code 2 "
      "and one "
      "line that names\n"
      "key, value, origin and the allowed values.\n\n"
      "Sizes: `64MiB`, `64M` (both are 2^26 bytes) or bytes. Times: `1ms`, `2s`, `5min`, `1h`, or "
      "a bare number in\n"
      "the unit given. Switches: `true`/`false`, `1`/`0`, `yes`/`no`, `on`/`off`; as a flag `--x` "
      "and `--no-x`.\n"
      "The last column has the names of Horovod that mean the same. A value above "
      "the range counts as\n"
      "the largest one under a name of Horovod's, with a warning. A knob that has no effect in "
      "this "
      "version is a warning\n"
      "when it is set, except a switch that is set to its default.\n";
  std::string_view group;
  for (const auto& row : knob_rows()) {
    const KnobText& knob = *row.text;
    if (knob.group != group) {
      group = knob.group;
      text += fmt::format(
          "\n## {}\n\n| Key | Default | Allowed | Meaning | Also |\n|---|---|---|---|---|\n",
          group);
    }
    text += fmt::format("| {} | {} | {} | {} | {} |\n", code(knob.key), code(format_fallback(row)),
                        cell(allowed(row)), cell(meaning(row)), cell(also(knob)));
  }
  return text;
}

/// A summary as a sentence.
std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

void append_flags(std::string& text, const cli::CommandRow& command) {
  std::vector<std::string> groups;
  for (const auto& flag : command.flags) {
    if (!flag.hidden && std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  for (const auto& group : groups) {
    text += fmt::format("\n### {}\n\n| Option | Meaning |\n|---|---|\n", group);
    for (const auto& flag : command.flags) {
      if (flag.hidden || flag.group != group) continue;
      text += fmt::format("| {} | {} |\n", cell(code(cli::flag_spellings(flag))),
                          cell(cli::flag_help(flag)));
    }
  }
}

std::string cli_page() {
  std::string text = head("cli");
  text +=
      "\n# Command line\n\n"
      "Options must come before the command; the first word that is not an option starts the "
      "command, and one `--`\n"
      "before it is dropped. A long option may be shortened as long as it stays unambiguous; its "
      "value follows as\n"
      "the next word or after `=`. `-np`, `-hostfile` and other long names also work with a single "
      "dash.\n"
      "A usage error ends with exit code 2 and one line.\n";
  for (const auto& command : cli::commands()) {
    text += fmt::format("\n## horo{}{}\n\n{}\n\n```\n{}\n```\n", command.name.empty() ? "" : " ",
                        command.name, sentence(command.summary), cli::usage_line(command));
    append_flags(text, command);
  }
  return text;
}

Result<std::string> read_header(std::string_view name) {
  const auto path = fmt::format("{}/{}", HORO_HEADERS, name);
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail(Errc::io, "cannot read '{}'", path);
  return text;
}

Result<std::string> c_reference() {
  HORO_TRY(const auto text, read_header("horo/horo.h"));
  HORO_TRY(const auto page, c_page({.name = "horo/horo.h", .text = text}));
  return head("horo-h") + page;
}

Result<std::string> cpp_reference() {
  std::vector<std::string> texts;
  for (const auto name : kCppHeaders) {
    HORO_TRY(auto text, read_header(name));
    texts.push_back(std::move(text));
  }
  std::vector<Header> headers;
  for (const auto& text : texts)
    headers.push_back({.name = kCppHeaders[headers.size()], .text = text});
  HORO_TRY(const auto page, cpp_page(headers));
  return head("horo-hpp") +
         "\n# C++ reference\n\n`#include <horo/horo.hpp>` includes all parts; the other headers "
         "are "
         "its parts. Names are in namespace `horo`.\n" +
         page;
}

Result<std::string> page_text(std::string_view page) {
  if (page == "knobs") return knobs_page();
  if (page == "cli") return cli_page();
  if (page == "horo-h") return c_reference();
  if (page == "horo-hpp") return cpp_reference();
  if (page == "bash") return bash_completions();
  if (page == "zsh") return zsh_completions();
  if (page == "fish") return fish_completions();
  return fail(Errc::invalid_argument,
              "unknown page '{}'; known are knobs, cli, horo-h, horo-hpp, python, bash, zsh, fish",
              page);
}

/// Replaces this process by the script that reads Python. Returns only if that fails, with the
/// reason.
Error become_python_page() {
  execlp("python3", "python3", HORO_PYTHON_PAGE, HORO_PYTHON_PACKAGE, nullptr);
  return fail_errno(errno, "starting python3").take();
}

int run(std::string_view page) {
  if (page == "python") return usage_error("horo-docs", become_python_page());
  const auto text = page_text(page);
  if (!text) return usage_error("horo-docs", text.error());
  return write_out(*text) ? exit_code::kOk : exit_code::kFailure;
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  return horo::apps::run(argc == 2 ? argv[1] : "");
}
