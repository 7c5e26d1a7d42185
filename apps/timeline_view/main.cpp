// SPDX-License-Identifier: Apache-2.0
// horo timeline-view: what a timeline says, in figures and in words. Also horo top.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <sys/resource.h>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/timeline_view/elsewhere.hpp"
#include "apps/timeline_view/html.hpp"
#include "apps/timeline_view/input.hpp"
#include "apps/timeline_view/output.hpp"
#include "apps/timeline_view/reading.hpp"
#include "apps/timeline_view/replace_file.hpp"
#include "apps/timeline_view/serve.hpp"
#include "apps/timeline_view/snapshot.hpp"
#include "apps/timeline_view/watch.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kAsTop = "--as=top";  ///< What `horo top` puts first.
constexpr int kTop = 10;
constexpr int kMostTop = 10'000;

struct Request {
  const cli::Command* command = nullptr;
  cli::Arguments arguments;  ///< Of all words; no rest.
  std::vector<std::string> paths;
  Selection selection;
  int top = kTop;
  double interval = 1;             ///< Seconds.
  std::vector<std::string> hosts;  ///< To be looked at too.

  bool has(std::string_view flag) const { return arguments.find(flag) != nullptr; }
};

/// Files and options in any order.
Status take_words(std::span<const char* const> words, Request& request) {
  std::vector<std::string> rest;
  for (std::vector<const char*> left(words.begin(), words.end()); !left.empty();) {
    HORO_TRY(auto parsed, cli::parse_arguments(*request.command, left));
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

/// Which options exclude each other.
Status check_forms(const Request& request) {
  const auto given = [&request](std::initializer_list<std::string_view> flags) {
    return std::count_if(flags.begin(), flags.end(),
                         [&](std::string_view flag) { return request.has(flag); });
  };
  if (given({"json", "csv", "export", "html", "serve"}) > 1) {
    return fail(Errc::invalid_argument,
                "--json, --csv, --html, --serve and --export exclude each other");
  }
  if (request.has("compare") && given({"csv", "export", "html", "serve"}) != 0)
    return fail(Errc::invalid_argument, "--compare is text, or JSON with --json");
  if (given({"compare", "snapshot"}) > 1)
    return fail(Errc::invalid_argument, "--compare and --snapshot exclude each other");
  const bool watches = given({"live", "follow"}) != 0;
  if (given({"live", "follow"}) > 1 ||
      (watches && given({"csv", "export", "html", "serve", "compare", "snapshot", "rank", "from",
                         "to", "top"}) != 0)) {
    return fail(Errc::invalid_argument,
                "--live and --follow exclude each other, and go with --json and --interval alone");
  }
  if (given({"interval"}) != 0 && !watches)
    return fail(Errc::invalid_argument, "--interval is for --live and --follow");
  for (const std::string_view flag : {"once", "hosts"}) {
    if (request.has(flag) && !request.has("live"))
      return fail(Errc::invalid_argument, "--{} is for --live", flag);
  }
  return {};
}

Status check_paths(const Request& request) {
  const auto count = request.paths.size();
  if (request.has("compare") && count != 2) {
    return fail(Errc::invalid_argument, "--compare takes two files or folders, {} are given",
                count);
  }
  if (request.has("live") && count != 0)
    return fail(Errc::invalid_argument, "--live takes a job and no files");
  if (request.has("follow") && count != 1)
    return fail(Errc::invalid_argument, "--follow takes one file or job, {} are given", count);
  if (count == 0 && !request.has("snapshot") && !request.has("live"))
    return fail(Errc::invalid_argument, "no file is given");
  return {};
}

Result<Request> read_request(const cli::Command& command, std::span<const char* const> words) {
  Request request{.command = &command};
  HORO_TRY_STATUS(take_words(words, request));
  if (request.has("help") || request.has("version")) return request;
  constexpr double kLongest = 1e9;
  constexpr double kLongestInterval = 3600;
  HORO_TRY_STATUS(take_number(request, "rank", 0, 1'000'000, request.selection.rank));
  HORO_TRY_STATUS(take_number(request, "from", 0.0, kLongest, request.selection.from));
  HORO_TRY_STATUS(take_number(request, "to", 0.0, kLongest, request.selection.to));
  // Of a FIFO earlier events may come later: they are before the timeline.
  if (request.has("to") && !request.has("from")) request.selection.from = 0;
  if (request.selection.from > request.selection.to) {
    return fail(Errc::invalid_argument, "--from {} is after --to {}", request.selection.from,
                request.selection.to);
  }
  HORO_TRY_STATUS(take_number(request, "top", 0, kMostTop, request.top));
  HORO_TRY_STATUS(take_number(request, "interval", 0.05, kLongestInterval, request.interval));
  if (const auto* hosts = request.arguments.find("hosts"); hosts != nullptr) {
    HORO_TRY(request.hosts, split_hosts(hosts->value));
  }
  if (command.name == "top") {
    if (request.paths.size() <= 1) return request;
    return fail(Errc::invalid_argument, "one job is shown, {} are given", request.paths.size());
  }
  if (const auto* format = request.arguments.find("export");
      format != nullptr && format->value != "chrome" && format->value != "perfetto") {
    return fail(Errc::invalid_argument,
                "option '--export': '{}' is not known; there are chrome and perfetto, which reads "
                "the same",
                format->value);
  }
  HORO_TRY_STATUS(check_forms(request));
  HORO_TRY_STATUS(check_paths(request));
  return request;
}

int refuse(const Error& error) {
  log::error("timeline-view", "{}", printable(error.message));
  return exit_code::kFailure;
}

void warn_of(const Figures& figures, const Selection& selection) {
  for (const auto& line : figures.warnings) log::warn("timeline-view", "{}", printable(line));
  if (selection.rank >= 0 && !figures.ranks.contains(selection.rank)) {
    log::warn("timeline-view", "--rank {}: there is no such rank, but {} others", selection.rank,
              figures.ranks.size());
  }
}

Status read_selected(const Request& request, const std::vector<std::string>& paths, Sink& sink) {
  if (request.selection.limits_time()) tell_start(paths, sink);
  return read_all(paths, sink);
}

Result<Figures> figures_of(const Request& request, const std::vector<std::string>& paths) {
  Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  HORO_TRY_STATUS(read_selected(request, paths, analysis));
  auto figures = analysis.finish();
  warn_of(figures, request.selection);
  return figures;
}

int finish(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse(fail_errno(errno, "standard output").take());
}

Result<std::string> page_of(const Request& request) {
  Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  Lanes lanes(analysis, request.selection.rank);
  HORO_TRY_STATUS(read_selected(request, request.paths, lanes));
  const auto figures = analysis.finish();
  warn_of(figures, request.selection);
  return as_html(figures, lanes);
}

/// A report may not take the place of what it is of.
Status check_report(const Request& request, const std::string& path) {
  HORO_TRY(const auto names, expand(request.paths));
  for (const auto& name : names) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error) &&
        std::filesystem::equivalent(path, name, error)) {
      return fail(Errc::invalid_argument, "--html would overwrite '{}', which is read", name);
    }
  }
  return {};
}

int write_report(const Request& request, const std::string& path) {
  if (auto checked = check_report(request, path); !checked) return refuse(checked.error());
  const auto page = page_of(request);
  if (!page) return refuse(page.error());
  const auto written = replace_file(path, *page);
  return written ? exit_code::kOk : refuse(written.error());
}

int serve(const Request& request) {
  const auto page = page_of(request);
  if (!page) return refuse(page.error());
  const auto signal = serve_page(
      *page, [](const std::string& address) { write_out(fmt::format("{}\n", address)); });
  if (!signal) return refuse(signal.error());
  return exit_code::kSignalBase + *signal;
}

int watch(const Request& request) {
  const auto* job = request.arguments.find("live");
  WatchOptions options{
      .hosts = request.hosts, .json = request.has("json"), .once = request.has("once")};
  options.interval =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(request.interval));
  options.what = job != nullptr ? job->value : request.paths.empty() ? "" : request.paths.front();
  std::error_code error;
  const auto code = !request.has("follow")                         ? watch_ranks(options)
                    : std::filesystem::exists(options.what, error) ? follow_file(options)
                                                                   : follow_job(options);
  return code ? *code : refuse(code.error());
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
  const auto done = export_chrome(request.paths, request.selection, warnings, write_out);
  if (!done) return refuse(done.error());
  warn_of(warnings.finish(), request.selection);
  return exit_code::kOk;
}

int view(Request request) {
  if (request.command->name == "top" || request.has("live") || request.has("follow"))
    return watch(request);
  if (request.has("compare")) return compare(request);
  if (const auto* job = request.arguments.find("snapshot"); job != nullptr) {
    const auto folder = save_running(job->value);
    if (!folder) return refuse(folder.error());
    log::info("timeline-view", "saved to {}", *folder);
    request.paths.push_back(*folder);
  }
  if (request.has("export")) return export_all(request);
  if (request.has("serve")) return serve(request);
  if (const auto* report = request.arguments.find("html"); report != nullptr)
    return write_report(request, report->value);
  const auto figures = figures_of(request, request.paths);
  if (!figures) return refuse(figures.error());
  if (request.has("json")) return finish(as_json(*figures));
  return finish(request.has("csv") ? as_csv(*figures) : as_text(*figures));
}

int run(std::span<const char* const> words) {
  const bool top = !words.empty() && words.front() == kAsTop;
  const auto& command = *cli::find_command(top ? "top" : "timeline-view");
  auto request = read_request(command, words.subspan(top ? 1 : 0));
  if (!request) return usage_error(fmt::format("horo {}", command.name), request.error());
  if (request->has("help")) return finish(cli::help_text(command));
  if (request->has("version")) return finish(fmt::format("{}\n", version()));
  return view(std::move(*request));
}

/// A job's folder holds a file per rank, and all are open at once.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  horo::apps::allow_many_files();
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
