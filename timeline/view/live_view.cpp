// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/live_view.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

#include "base/json.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/view/figures_text.hpp"
#include "timeline/view/live_gpus.hpp"
#include "timeline/view/live_members.hpp"

namespace horo::timeline {

namespace {

constexpr std::int64_t kLate = 1'000'000'000;  ///< Ranks with a smaller lag are not headlines.
constexpr std::size_t kNamed = 4;              ///< How many ranks of a list are named.

std::string clock_text(std::int64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &parts)};
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kNamed) text += fmt::format(" and {} more", ranks.size() - kNamed);
  return text;
}

/// "waits for 1, 3"
std::string state_text(const LiveRow& row) {
  auto text = std::string(name(row.state));
  if (row.state == LiveState::waits && !row.missing.empty())
    text += fmt::format(" for {}", ranks_text(row.missing));
  if (row.age_ns != 0) text += fmt::format(", {} ago", time_text(static_cast<double>(row.age_ns)));
  return text;
}

std::string tensor_text(const LiveRow& row) {
  if (row.tensor.empty()) return {};
  return row.tensors > 1 ? fmt::format("{} and {} more", row.tensor, row.tensors - 1) : row.tensor;
}

std::string since_text(const LiveRow& row) {
  return row.state == LiveState::starts || row.state == LiveState::ended
             ? "-"
             : time_text(static_cast<double>(row.for_ns));
}

std::string lag_text(const LiveRow& row) {
  return row.lag_ns == 0 ? "-" : time_text(static_cast<double>(row.lag_ns));
}

std::string head_line(const LiveView& view) {
  auto text = fmt::format("job {}, {}: ", view.job, clock_text(view.now_ns));
  const auto here = view.rows.size();
  if (static_cast<int>(here) >= view.size) return text + fmt::format("{} ranks", view.size);
  return text + fmt::format("{} of {} ranks; {}", here, view.size, view.others);
}

/// Names the rank that all ranks of several hosts seem to wait for, judged by the shares of time
/// that they spend waiting: no process has the records of all hosts. Empty where there is no such
/// rank.
std::string least_waiting(const LiveView& view) {
  constexpr double kMuch = 0.25;
  const LiveRow* least = nullptr;
  double next = 1;
  bool hosts = false;
  for (const auto& row : view.rows) {
    hosts = hosts || row.host != view.rows.front().host;
    if (least == nullptr || row.waiting < least->waiting) {
      next = least == nullptr ? 1 : least->waiting;
      least = &row;
    } else {
      next = std::min(next, row.waiting);
    }
  }
  if (!hosts || next < kMuch || least->waiting > next / 3) return {};
  return fmt::format(
      "rank {} on {} waits for {:.0f} % of the time, all others for {:.0f} % and more: they wait "
      "for it",
      least->rank, least->host, least->waiting * 100, next * 100);
}

/// Cuts a line to the width of the terminal.
std::string cut(std::string line, int width) {
  if (width > 0 && line.size() > static_cast<std::size_t>(width)) {
    auto end = static_cast<std::size_t>(width);
    // Do not cut inside a UTF-8 character.
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80U) --end;
    line.resize(end);
  }
  return line;
}

/// Keeps the first of the lines, if there are more than `most`, and says how many are left out.
void shorten(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() <= most) return;
  const auto kept = most == 0 ? 0 : most - 1;
  const auto left_out = lines.size() - kept;
  lines.resize(kept);
  if (most != 0) lines.push_back(fmt::format("{} more lines", left_out));
}

JsonWriter& write(JsonWriter& json, const LiveRow& row) {
  json.begin_object().key("rank").value(row.rank).key("host").value(row.host);
  json.key("pid").value(row.pid).key("state").value(name(row.state));
  json.key("for_ns").value(row.for_ns).key("tensor").value(row.tensor);
  json.key("tensors").value(static_cast<int>(row.tensors)).key("missing").begin_array();
  for (const int rank : row.missing) json.value(rank);
  json.end_array().key("operations_per_s").value(row.operations_per_s);
  json.key("bytes_per_s").value(row.bytes_per_s).key("waiting").value(row.waiting);
  json.key("lag_ns").value(row.lag_ns).key("age_ns").value(row.age_ns);
  json.key("stalls").value(static_cast<std::int64_t>(row.stalls));
  json.key("lost_records").value(static_cast<std::int64_t>(row.lost));
  return json.end_object();
}

}  // namespace

std::string follow_text(const LiveView& view) {
  auto text = fmt::format("{} {}", clock_text(view.now_ns), summary_text(view.figures));
  for (const auto& line : headlines(view)) text += fmt::format("* {}\n", printable(line));
  return text;
}

std::vector<std::string> headlines(const LiveView& view) {
  auto lines = view.members ? member_lines(*view.members) : std::vector<std::string>();
  lines.insert(lines.end(), view.problems.begin(), view.problems.end());
  const auto latest =
      std::max_element(view.rows.begin(), view.rows.end(),
                       [](const LiveRow& a, const LiveRow& b) { return a.lag_ns < b.lag_ns; });
  if (latest != view.rows.end() && latest->lag_ns >= kLate) {
    const auto waiting = std::count_if(view.rows.begin(), view.rows.end(), [&](const LiveRow& row) {
      return std::find(row.missing.begin(), row.missing.end(), latest->rank) != row.missing.end();
    });
    lines.push_back(fmt::format("rank {} on {}, process {}, keeps {} of the others waiting for {}",
                                latest->rank, latest->host, latest->pid, waiting,
                                time_text(static_cast<double>(latest->lag_ns))));
  }
  for (const auto& verdict : judge(view.figures)) {
    if (verdict.kind != "none") lines.push_back(verdict.text);
  }
  if (auto line = least_waiting(view); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string live_table(const LiveView& view, int width, int height) {
  std::vector<std::string> lines{head_line(view)};
  for (const auto& line : headlines(view)) lines.push_back("* " + line);
  lines.push_back(fmt::format("{:>6}  {:<20}  {:>8}  {:>8}  {:>12}  {:>11}  {:>7}  {}", "rank",
                              "state", "for", "lag", "operations/s", "rate", "waiting", "tensor"));
  for (const auto& row : view.rows) {
    lines.push_back(fmt::format("{:>6}  {:<20}  {:>8}  {:>8}  {:>12.0f}  {:>11}  {:>5.0f} %  {}",
                                row.rank, state_text(row), since_text(row), lag_text(row),
                                row.operations_per_s, rate_text(row.bytes_per_s, 1e9),
                                row.waiting * 100, tensor_text(row)));
  }
  auto gpus = gpu_table(view.gpus);
  if (height > 1) {
    const auto room = static_cast<std::size_t>(height);
    const auto others = lines.size() < room ? room - lines.size() : 0;
    shorten(gpus, std::max(others, room / 2));
    shorten(lines, room - gpus.size());
  }
  lines.insert(lines.end(), gpus.begin(), gpus.end());
  std::string text;
  for (auto& line : lines) text += cut(printable(std::move(line)), width) + "\n";
  return text;
}

std::string live_lines(const LiveView& view) {
  const auto now = clock_text(view.now_ns);
  std::string text;
  for (const auto& line : headlines(view))
    text += printable(fmt::format("{} {}", now, line)) + "\n";
  for (const auto& row : view.rows) {
    auto line = fmt::format("{} rank {} on {}: {}", now, row.rank, row.host, state_text(row));
    if (const auto since = since_text(row); since != "-") line += fmt::format(" for {}", since);
    if (!row.tensor.empty()) line += fmt::format(": {}", tensor_text(row));
    line += fmt::format("; {:.0f} operations/s, {}", row.operations_per_s,
                        rate_text(row.bytes_per_s, 1e9));
    if (row.lag_ns != 0) line += fmt::format("; others wait for it for {}", lag_text(row));
    text += printable(std::move(line)) + "\n";
  }
  for (const auto& gpu : view.gpus)
    text += printable(fmt::format("{} {}", now, gpu_line(gpu))) + "\n";
  if (static_cast<int>(view.rows.size()) < view.size)
    text += fmt::format("{} {}\n", now, head_line(view));
  return text;
}

std::string live_json(const LiveView& view) {
  JsonWriter json;
  json.begin_object().key("job").value(view.job).key("time_ns").value(view.now_ns);
  json.key("size").value(view.size).key("ranks").begin_array();
  for (const auto& row : view.rows) write(json, row);
  json.end_array().key("headlines").begin_array();
  for (const auto& line : headlines(view)) json.value(line);
  json.end_array().key("gpus").begin_array();
  for (const auto& gpu : view.gpus) write(json, gpu);
  json.end_array();
  if (view.members) write(json.key("members"), *view.members);
  json.end_object();
  return one_line(json.text());
}

}  // namespace horo::timeline
