// SPDX-License-Identifier: Apache-2.0
// horo timeline-view: analyses timelines, and prints figures and verdicts.
#include <filesystem>
#include <span>

#include "apps/common/replace_file.hpp"
#include "apps/common/running_job/watch.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/timeline_view/follow.hpp"
#include "apps/timeline_view/request.hpp"
#include "apps/timeline_view/snapshot.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "timeline/input/reading.hpp"
#include "timeline/input/timeline_input.hpp"
#include "timeline/serve/page_server.hpp"
#include "timeline/view/figures_text.hpp"
#include "timeline/view/html_page.hpp"

namespace horo::apps {

namespace {

int refuse(const Error& error) {
  log::error("timeline-view", "{}", timeline::printable(error.message));
  return exit_code::kFailure;
}

void warn_of(const timeline::Figures& figures, const timeline::Selection& selection) {
  for (const auto& line : figures.warnings)
    log::warn("timeline-view", "{}", timeline::printable(line));
  if (selection.rank >= 0 && !figures.ranks.contains(selection.rank)) {
    log::warn("timeline-view", "--rank {}: there is no such rank among the {} ranks",
              selection.rank, figures.ranks.size());
  }
}

Status read_selected(const ViewRequest& request, const std::vector<std::string>& paths,
                     timeline::OperationSink& sink) {
  if (request.selection.limits_time()) timeline::report_start(paths, sink);
  return timeline::read_all(paths, sink);
}

Result<timeline::Figures> figures_of(const ViewRequest& request,
                                     const std::vector<std::string>& paths) {
  timeline::Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  HORO_TRY_STATUS(read_selected(request, paths, analysis));
  auto figures = analysis.finish();
  warn_of(figures, request.selection);
  return figures;
}

int finish(std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse(fail_errno(errno, "standard output").take());
}

Result<std::string> page_of(const ViewRequest& request) {
  timeline::Analysis analysis(request.selection, static_cast<std::size_t>(request.top));
  timeline::PageData page_data(analysis, request.selection.rank);
  HORO_TRY_STATUS(read_selected(request, request.paths(), page_data));
  const auto figures = analysis.finish();
  warn_of(figures, request.selection);
  return timeline::as_html(figures, page_data);
}

/// Fails where the report would overwrite one of its inputs.
Status check_report(const ViewRequest& request, const std::string& path) {
  HORO_TRY(const auto names, timeline::expand_paths(request.paths()));
  for (const auto& name : names) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error) &&
        std::filesystem::equivalent(path, name, error)) {
      return fail(Errc::invalid_argument, "--html would overwrite its input '{}'", name);
    }
  }
  return {};
}

int write_report(const ViewRequest& request, const std::string& path) {
  if (auto checked = check_report(request, path); !checked) return refuse(checked.error());
  const auto page = page_of(request);
  if (!page) return refuse(page.error());
  const auto written = replace_file(path, *page);
  return written ? exit_code::kOk : refuse(written.error());
}

int serve(const ViewRequest& request) {
  const auto page = page_of(request);
  if (!page) return refuse(page.error());
  const auto signal = timeline::serve_page(
      *page, [](const std::string& address) { write_out(fmt::format("{}\n", address)); });
  if (!signal) return refuse(signal.error());
  return exit_code::kSignalBase + *signal;
}

int watch(const ViewRequest& request) {
  auto options = request.watch;
  const auto* job = request.arguments.find("live");
  options.target = job != nullptr ? job->value : request.paths().front();
  std::error_code error;
  const auto code = job != nullptr                                   ? watch_ranks(options)
                    : std::filesystem::exists(options.target, error) ? follow_file(options)
                                                                     : follow_job(options);
  return code ? *code : refuse(code.error());
}

int compare(const ViewRequest& request) {
  const auto before = figures_of(request, {request.paths()[0]});
  if (!before) return refuse(before.error());
  const auto after = figures_of(request, {request.paths()[1]});
  if (!after) return refuse(after.error());
  return finish(request.has("json") ? timeline::compare_json(*before, *after)
                                    : timeline::compare_text(*before, *after));
}

int export_all(const ViewRequest& request) {
  timeline::Analysis warnings(request.selection, 0);
  const auto done =
      timeline::export_chrome(request.paths(), request.selection, warnings, write_out);
  if (!done) return refuse(done.error());
  warn_of(warnings.finish(), request.selection);
  return exit_code::kOk;
}

/// Saves the last records of a running job; the request then reads those files.
Status take_snapshot(ViewRequest& request, const std::string& job) {
  HORO_TRY(const auto folder, save_running(job));
  log::info("timeline-view", "saved to {}", folder);
  request.arguments.rest.push_back(folder);
  return {};
}

int view(ViewRequest request) {
  if (request.has("live") || request.has("follow")) return watch(request);
  if (request.has("compare")) return compare(request);
  if (const auto* job = request.arguments.find("snapshot"); job != nullptr) {
    if (const auto saved = take_snapshot(request, job->value); !saved) return refuse(saved.error());
  }
  if (request.has("export")) return export_all(request);
  if (request.has("serve")) return serve(request);
  if (const auto* report = request.arguments.find("html"); report != nullptr)
    return write_report(request, report->value);
  const auto figures = figures_of(request, request.paths());
  if (!figures) return refuse(figures.error());
  if (request.has("json")) return finish(timeline::as_json(*figures));
  return finish(request.has("csv") ? timeline::as_csv(*figures) : timeline::as_text(*figures));
}

int run(std::span<const char* const> words) {
  const auto& command = *cli::find_command("timeline-view");
  auto request = read_request(command, words);
  if (!request) return usage_error("horo timeline-view", request.error());
  if (request->has("help")) return finish(cli::help_text(command));
  if (request->has("version")) return finish(fmt::format("{}\n", version()));
  return view(std::move(*request));
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  horo::apps::allow_many_files();
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(words.subspan(words.empty() ? 0 : 1));
}
