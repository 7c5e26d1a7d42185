// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/request.hpp"

#include <algorithm>
#include <initializer_list>

namespace horo::apps {

namespace {

/// Fails where options exclude each other.
Status check_forms(const ViewRequest& request) {
  const auto given = [&request](std::initializer_list<std::string_view> flags) {
    return std::count_if(flags.begin(), flags.end(),
                         [&](std::string_view flag) { return request.has(flag); });
  };
  if (given({"json", "csv", "export", "html", "serve"}) > 1) {
    return fail(Errc::invalid_argument,
                "--json, --csv, --html, --serve and --export exclude each other");
  }
  if (request.has("compare") && given({"csv", "export", "html", "serve"}) != 0)
    return fail(Errc::invalid_argument, "--compare prints text, or JSON with --json");
  if (given({"compare", "snapshot"}) > 1)
    return fail(Errc::invalid_argument, "--compare and --snapshot exclude each other");
  const bool watches = given({"live", "follow"}) != 0;
  if (given({"live", "follow"}) > 1 ||
      (watches && given({"csv", "export", "html", "serve", "compare", "snapshot", "rank", "from",
                         "to", "top"}) != 0)) {
    return fail(Errc::invalid_argument,
                "--live and --follow exclude each other, and go only with --json and --interval");
  }
  if (given({"interval"}) != 0 && !watches)
    return fail(Errc::invalid_argument, "--interval is for --live and --follow");
  for (const std::string_view flag : {"once", "hosts"}) {
    if (request.has(flag) && !request.has("live"))
      return fail(Errc::invalid_argument, "--{} is for --live", flag);
  }
  const auto* format = request.arguments.find("export");
  if (format != nullptr && format->value != "chrome" && format->value != "perfetto") {
    return fail(Errc::invalid_argument,
                "option '--export': '{}' is not known; the formats are chrome and perfetto, which "
                "are the same",
                format->value);
  }
  return {};
}

Status check_paths(const ViewRequest& request) {
  const auto count = request.paths().size();
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

Status read_selection(const cli::Arguments& arguments, timeline::Selection& selection) {
  constexpr int kMostRank = 1'000'000;
  constexpr double kLongest = 1e9;  // Seconds.
  HORO_TRY_STATUS(read_number(arguments, "rank", 0, kMostRank, selection.rank));
  HORO_TRY_STATUS(read_number(arguments, "from", 0.0, kLongest, selection.from));
  HORO_TRY_STATUS(read_number(arguments, "to", 0.0, kLongest, selection.to));
  // A FIFO may bring an event from before the first one; with --to that event is left out.
  if (arguments.find("to") != nullptr && arguments.find("from") == nullptr) selection.from = 0;
  if (selection.from > selection.to) {
    return fail(Errc::invalid_argument, "--from {} is after --to {}", selection.from, selection.to);
  }
  return {};
}

}  // namespace

Result<ViewRequest> read_request(const cli::CommandRow& command,
                                 std::span<const char* const> words) {
  constexpr int kMostTop = 10'000;
  ViewRequest request;
  HORO_TRY(request.arguments, parse_in_any_order(command, words));
  if (request.has("help") || request.has("version")) return request;
  HORO_TRY_STATUS(read_selection(request.arguments, request.selection));
  HORO_TRY_STATUS(read_number(request.arguments, "top", 0, kMostTop, request.top));
  HORO_TRY(request.watch, read_watch_options(request.arguments));
  request.watch.program = "timeline-view";
  HORO_TRY_STATUS(check_forms(request));
  HORO_TRY_STATUS(check_paths(request));
  return request;
}

}  // namespace horo::apps
