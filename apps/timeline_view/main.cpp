// SPDX-License-Identifier: Apache-2.0
// horo timeline-view: what a timeline says, in figures and in words.
#include <charconv>
#include <fstream>
#include <span>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/timeline_view/html.hpp"
#include "apps/timeline_view/output.hpp"
#include "apps/timeline_view/reading.hpp"
#include "apps/timeline_view/snapshot.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

constexpr const char* kTool = "horo timeline-view";
constexpr int kTop = 10;
constexpr int kMostTop = 10'000;

struct Request {
  cli::Arguments arguments;  ///< Of all words; no rest.
  std::vector<std::string> paths;
  Selection selection;
  int top = kTop;

  bool has(std::string_view flag) const { return arguments.find(flag) != nullptr; }
};

/// Files and options in any order.
Status take_words(std::span<const char* const> words, Request& request) {
  const auto& command = *cli::find_command("timeline-view");
  std::vector<std::string> rest;
  for (std::vector<const char*> left(words.begin(), words.end()); !left.empty();) {
    HORO_TRY(auto parsed, cli::parse_arguments(command, left));
    for (auto& option : parsed.options) request.arguments.options.push_back(std::move(option));
    rest = std::move(parsed.rest);
    left.clear();
    if (rest.empty()) break;
    request.paths.push_back(rest.front());
    for (std::size_t i = words.size() - (rest.size() - 1); i < words.size(); ++i)
      left.push_back(words[i]);
  }
  return {};
}

template <typename T>
Status take_number(const Request& request, std::string_view flag, T least, T most, T& to) {
  const auto* option = request.arguments.find(flag);
  if (option == nullptr) return {};
  const auto& text = option->value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error == std::errc{} && end == text.data() + text.size() && to >= least && to <= most)
    return {};
  return fail(Errc::invalid_argument, "option '--{}': '{}' must be a number from {} to {}", flag,
              text, least, most);
}

Result<Request> read_request(std::span<const char* const> words) {
  Request request;
  HORO_TRY_STATUS(take_words(words, request));
  if (request.has("help") || request.has("version")) return request;
  constexpr double kLongest = 1e9;
  request.selection.to = kLongest;
  HORO_TRY_STATUS(take_number(request, "rank", 0, 1'000'000, request.selection.rank));
  HORO_TRY_STATUS(take_number(request, "from", 0.0, kLongest, request.selection.from));
  HORO_TRY_STATUS(take_number(request, "to", 0.0, kLongest, request.selection.to));
  HORO_TRY_STATUS(take_number(request, "top", 0, kMostTop, request.top));
  if (const auto* format = request.arguments.find("export");
      format != nullptr && format->value != "chrome") {
    return fail(Errc::invalid_argument, "option '--export': '{}' is not known; there is chrome",
                format->value);
  }
  const int forms = static_cast<int>(request.has("json")) + static_cast<int>(request.has("csv")) +
                    static_cast<int>(request.has("export")) + static_cast<int>(request.has("html"));
  if (forms > 1) {
    return fail(Errc::invalid_argument, "--json, --csv, --html and --export exclude each other");
  }
  if (request.has("compare") && forms == 1 && !request.has("json"))
    return fail(Errc::invalid_argument, "--compare is text, or JSON with --json");
  if (request.has("compare") && request.paths.size() != 2) {
    return fail(Errc::invalid_argument, "--compare takes two files or folders, {} are given",
                request.paths.size());
  }
  if (request.paths.empty() && !request.has("snapshot"))
    return fail(Errc::invalid_argument, "no file is given");
  return request;
}

int refuse(const Error& error) {
  log::error("timeline-view", "{}", error.message);
  return exit_code::kFailure;
}

Result<Figures> figures_of(const Request& request, const std::vector<std::string>& paths) {
  Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  HORO_TRY_STATUS(read_all(paths, analysis));
  auto figures = analysis.finish();
  for (const auto& line : figures.warnings) log::warn("timeline-view", "{}", line);
  return figures;
}

int finish(std::string_view text) {
  return write_out(text) ? exit_code::kOk : exit_code::kFailure;
}

int write_report(const Request& request, const std::string& path) {
  Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  Lanes lanes(analysis);
  if (auto read = read_all(request.paths, lanes); !read) return refuse(read.error());
  const auto figures = analysis.finish();
  for (const auto& line : figures.warnings) log::warn("timeline-view", "{}", line);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << as_html(figures, lanes);
  file.close();
  if (!file) return refuse({Errc::io, fmt::format("'{}' cannot be written", path)});
  return exit_code::kOk;
}

int compare(const Request& request) {
  const auto before = figures_of(request, {request.paths[0]});
  if (!before) return refuse(before.error());
  const auto after = figures_of(request, {request.paths[1]});
  if (!after) return refuse(after.error());
  return finish(request.has("json") ? compare_json(*before, *after)
                                    : compare_text(*before, *after));
}

int export_all(const Request& request) {
  Analysis warnings(request.selection, 0);
  const auto done = export_chrome(request.paths, warnings, write_out);
  if (!done) return refuse(done.error());
  for (const auto& line : warnings.finish().warnings) log::warn("timeline-view", "{}", line);
  return exit_code::kOk;
}

int view(Request request) {
  if (request.has("compare")) return compare(request);
  if (const auto* job = request.arguments.find("snapshot"); job != nullptr) {
    const auto folder = save_running(job->value);
    if (!folder) return refuse(folder.error());
    log::info("timeline-view", "saved to {}", *folder);
    request.paths.push_back(*folder);
  }
  if (request.has("export")) return export_all(request);
  if (const auto* report = request.arguments.find("html"); report != nullptr)
    return write_report(request, report->value);
  const auto figures = figures_of(request, request.paths);
  if (!figures) return refuse(figures.error());
  if (request.has("json")) return finish(as_json(*figures));
  return finish(request.has("csv") ? as_csv(*figures) : as_text(*figures));
}

int run(std::span<const char* const> words) {
  auto request = read_request(words);
  if (!request) return usage_error(kTool, request.error());
  if (request->has("help")) return finish(cli::help_text(*cli::find_command("timeline-view")));
  if (request->has("version")) return finish(fmt::format("{}\n", version()));
  return view(std::move(*request));
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
