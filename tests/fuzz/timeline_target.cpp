// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "timeline/input/reading.hpp"
#include "timeline/record/timeline_file.hpp"
#include "timeline/view/figures_text.hpp"
#include "timeline/view/html_page.hpp"

namespace horo::fuzz {

namespace {

/// Any bytes give figures or an error, and the figures are finite and consistent.
std::string run_view(std::string_view bytes) {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("horo-fuzz-{}", getpid())).string();
  std::ofstream(path, std::ios::binary) << bytes;
  timeline::Analysis analysis({}, 3);
  timeline::PageData page_data(analysis);
  const auto read = timeline::read_all({path}, page_data);
  std::filesystem::remove(path);
  if (!read) return read.error().message.empty() ? "the error has no message" : "";
  const auto figures = analysis.finish();
  if (figures.slowest.size() > 3) return "more operations than requested";
  if (figures.last_ns < figures.first_ns) return "the end is before the beginning";
  if (as_text(figures).empty() || as_html(figures, page_data).empty()) return "nothing to read";
  return "";
}

std::string rank_file() {
  timeline::FileContent content;
  content.about.identity.size = 2;
  content.about.identity.set_host("node1");
  content.about.last = {.ticks = 1000, .monotonic_ns = 500, .wall_ns = 500};
  timeline::NameSlot slot;
  slot.sequence = 2;
  slot.id = 7;
  slot.name_bytes = 1;
  slot.text[0] = 'x';
  content.names.push_back(slot);
  using timeline::RecordKind;
  content.records = {{.ticks = 1, .kind = RecordKind::submit, .id = 7},
                     timeline::encode({.tensors = 1, .entry = 3, .bytes = 64}, 2),
                     {.ticks = 2, .kind = RecordKind::members, .detail = 1, .id = 7},
                     {.ticks = 9, .kind = RecordKind::wait, .id = 7, .x = 4},
                     {.ticks = 9, .kind = RecordKind::end, .x = 3}};
  return encode_file(content);
}

constexpr const char* kTrace =
    R"([{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "w"}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1}, {"ph": "X", "name": "1", "ts": 2, "pid": 1, "dur": 0},
{"ph": "E", "ts": 3, "pid": 1}, {"ph": "B", "name": "ALLREDUCE", "ts": 4, "pid": 1},
{"ph": "B", "name": "GLOO_ALLREDUCE", "ts": 5, "pid": 1}, {"ph": "E", "ts": 9, "pid": 1},
{"ph": "E", "ts": 9, "pid": 1, "args": {"dtype": "float32", "shape": "[2, 3]"}},
{"ph": "X", "cat": "kernel", "name": "ncclAllReduce", "pid": "a", "ts": 3.5, "dur": 2, "args": {"In msg nelems": 9}}])";

}  // namespace

std::vector<Target> timeline_targets() {
  return {
      {.name = "timeline", .run = run_view, .seeds = {rank_file()}, .words = {}, .rounds = 1500},
      {.name = "trace",
       .run = run_view,
       .seeds = {kTrace},
       .words = {"1e308", "-1e308", "99999999999999999999", "[", "{", "\"ph\": \"E\"", "null"},
       .rounds = 1500}};
}

}  // namespace horo::fuzz
