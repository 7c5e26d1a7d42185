// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/live_gpus.hpp"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "timeline/analysis/verdict.hpp"

namespace horo::timeline {

namespace {

template <typename T>
void read_number(std::string_view text, T& to) {
  std::from_chars(text.data(), text.data() + text.size(), to);
}

std::string memory_text(const LiveGpu& gpu) {
  return fmt::format("{} of {}", bytes_text(static_cast<double>(gpu.used)),
                     bytes_text(static_cast<double>(gpu.memory)));
}

std::string links_text(const LiveGpu& gpu) {
  std::string text;
  for (const auto& links : gpu.links)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", links.links, links.peer);
  return text;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

std::string row_text(const LiveGpu& gpu) {
  const auto head = fmt::format("{:<16}  {:>3}", gpu.host, gpu.index);
  if (!gpu.problem.empty()) return fmt::format("{}  cannot be used: {}", head, gpu.problem);
  return fmt::format("{}  {:>5}  {:>22}  {:>5}  {:<12}  {:<20}  {}", head,
                     gpu.busy < 0 ? "-" : fmt::format("{} %", gpu.busy), memory_text(gpu),
                     gpu.celsius < 0 ? "-" : fmt::format("{} C", gpu.celsius),
                     or_dash(fmt::format("{}", fmt::join(gpu.ranks, ", "))),
                     or_dash(links_text(gpu)), gpu.name);
}

bool read_links(JsonReader& json, LiveGpuLinks& links) {
  return json.object([&](std::string_view key) {
    const std::string member(key);
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (member == "peer") links.peer = text;
    if (member == "links") read_number(text, links.links);
    return true;
  });
}

}  // namespace

std::vector<std::string> gpu_table(const std::vector<LiveGpu>& gpus) {
  if (gpus.empty()) return {};
  std::vector<std::string> lines{
      fmt::format("{:<16}  {:>3}  {:>5}  {:>22}  {:>5}  {:<12}  {:<20}  {}", "host", "GPU", "busy",
                  "memory used", "temp", "ranks", "NVLinks", "model")};
  for (const auto& gpu : gpus) lines.push_back(row_text(gpu));
  return lines;
}

std::string gpu_line(const LiveGpu& gpu) {
  auto text = fmt::format("GPU {} on {}", gpu.index, gpu.host);
  if (!gpu.problem.empty()) return text + fmt::format(" cannot be used: {}", gpu.problem);
  text += ": ";
  if (gpu.busy >= 0) text += fmt::format("{} % busy, ", gpu.busy);
  text += memory_text(gpu) + " used";
  if (gpu.celsius >= 0) text += fmt::format(", {} C", gpu.celsius);
  if (!gpu.links.empty()) text += fmt::format(", NVLinks {}", links_text(gpu));
  if (gpu.slices != 0) text += fmt::format(", {} MIG slices", gpu.slices);
  if (!gpu.ranks.empty())
    text +=
        fmt::format("; rank{} {}", gpu.ranks.size() == 1 ? "" : "s", fmt::join(gpu.ranks, ", "));
  return text;
}

void write(JsonWriter& json, const LiveGpu& gpu) {
  const auto known = [&json](int number) {
    if (number < 0) {
      json.null();
    } else {
      json.value(number);
    }
  };
  json.begin_object().key("host").value(gpu.host).key("index").value(gpu.index);
  json.key("name").value(gpu.name).key("uuid").value(gpu.uuid).key("busy_percent");
  known(gpu.busy);
  json.key("used_bytes").value(static_cast<std::int64_t>(gpu.used));
  json.key("memory_bytes").value(static_cast<std::int64_t>(gpu.memory)).key("celsius");
  known(gpu.celsius);
  json.key("mig_slices").value(gpu.slices).key("nvlinks").begin_array();
  for (const auto& links : gpu.links) {
    json.begin_object().key("peer").value(links.peer).key("links").value(links.links);
    json.end_object();
  }
  json.end_array().key("ranks").begin_array();
  for (const int rank : gpu.ranks) json.value(rank);
  json.end_array();
  if (!gpu.problem.empty()) json.key("problem").value(gpu.problem);
  json.end_object();
}

bool read_gpu(JsonReader& json, LiveGpu& gpu) {
  return json.object([&](std::string_view key) {
    if (key == "nvlinks")
      return json.array([&] { return read_links(json, gpu.links.emplace_back()); });
    if (key == "ranks") {
      return json.array([&] {
        std::string_view rank;
        if (!json.scalar(rank)) return false;
        read_number(rank, gpu.ranks.emplace_back(0));
        return true;
      });
    }
    const std::string member(key);
    if (json.peek() == '{' || json.peek() == '[') return json.skip();
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (member == "host") gpu.host = text;
    if (member == "index") read_number(text, gpu.index);
    if (member == "name") gpu.name = text;
    if (member == "uuid") gpu.uuid = text;
    if (member == "busy_percent") read_number(text, gpu.busy);
    if (member == "used_bytes") read_number(text, gpu.used);
    if (member == "memory_bytes") read_number(text, gpu.memory);
    if (member == "celsius") read_number(text, gpu.celsius);
    if (member == "mig_slices") read_number(text, gpu.slices);
    if (member == "problem") gpu.problem = text;
    return true;
  });
}

}  // namespace horo::timeline
