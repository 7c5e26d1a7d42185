// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/merge_views.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "timeline/chrome/json_reader.hpp"
#include "timeline/view/live_gpus.hpp"

namespace horo::timeline {

namespace {

constexpr std::size_t kMostMissing = 64;  ///< In one row: a view may have thousands of rows.
constexpr std::array kStates{LiveState::starts, LiveState::computes, LiveState::waits,
                             LiveState::moves,  LiveState::stopped,  LiveState::ended};

template <typename T>
void take_number(std::string_view text, T& to) {
  std::from_chars(text.data(), text.data() + text.size(), to);
}

bool read_row(JsonReader& json, LiveRow& row) {
  return json.object([&](std::string_view key) {
    if (key == "missing") {
      return json.array([&] {
        std::string_view rank;
        if (!json.scalar(rank)) return false;
        take_number(rank, row.missing.emplace_back(0));
        return true;
      });
    }
    const std::string member(key);
    if (json.peek() == '{' || json.peek() == '[') return json.skip();
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (member == "rank") take_number(text, row.rank);
    if (member == "host") row.host = text;
    if (member == "pid") take_number(text, row.pid);
    if (member == "tensor") row.tensor = text;
    if (member == "tensors") take_number(text, row.tensors);
    if (member == "for_ns") take_number(text, row.for_ns);
    if (member == "lag_ns") take_number(text, row.lag_ns);
    if (member == "operations_per_s") take_number(text, row.operations_per_s);
    if (member == "bytes_per_s") take_number(text, row.bytes_per_s);
    if (member == "waiting") take_number(text, row.waiting);
    if (member == "stalls") take_number(text, row.stalls);
    if (member == "lost_records") take_number(text, row.lost);
    if (member == "state") {
      const auto* const state = std::find_if(kStates.begin(), kStates.end(),
                                             [&](LiveState known) { return name(known) == text; });
      if (state != kStates.end()) row.state = *state;
    }
    return true;
  });
}

/// Whether the rank has no operation in progress, so that others may wait for it.
bool is_idle(const LiveRow& row) {
  return row.state == LiveState::computes || row.state == LiveState::starts ||
         row.state == LiveState::stopped;
}

}  // namespace

Result<LiveView> parse_live(std::string_view line) {
  const ByteSource source = [&line](char* to, std::size_t room) -> Result<std::size_t> {
    const auto count = line.copy(to, room);
    line.remove_prefix(count);
    return count;
  };
  JsonReader json(source);
  LiveView view;
  const bool whole = json.object([&](std::string_view key) {
    if (key == "ranks") return json.array([&] { return read_row(json, view.rows.emplace_back()); });
    if (key == "gpus") return json.array([&] { return read_gpu(json, view.gpus.emplace_back()); });
    const std::string member(key);
    if (json.peek() == '{' || json.peek() == '[') return json.skip();
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (member == "job") view.job = text;
    if (member == "size") take_number(text, view.size);
    if (member == "time_ns") take_number(text, view.now_ns);
    return true;
  });
  if (!whole) return fail(Errc::protocol, "not a view of a job: {}", json.problem());
  return view;
}

void join_views(LiveView& to, const LiveView& other) {
  to.size = std::max(to.size, other.size);
  std::set<int> known;
  for (const auto& row : to.rows) known.insert(row.rank);
  for (const auto& row : other.rows) {
    if (known.insert(row.rank).second) to.rows.push_back(row);
  }
  std::sort(to.rows.begin(), to.rows.end(),
            [](const LiveRow& a, const LiveRow& b) { return a.rank < b.rank; });
  std::set<std::string> hosts;
  for (const auto& gpu : to.gpus) hosts.insert(gpu.host);
  for (const auto& gpu : other.gpus) {
    if (!hosts.contains(gpu.host)) to.gpus.push_back(gpu);
  }
  std::stable_sort(to.gpus.begin(), to.gpus.end(),
                   [](const LiveGpu& a, const LiveGpu& b) { return a.host < b.host; });
}

void keep_members(LiveView& view, int size) {
  std::erase_if(view.rows, [size](const LiveRow& row) {
    return row.state == LiveState::ended || row.rank >= size;
  });
  view.size = size;
}

void find_missing(LiveView& view, Observed observed) {
  for (auto& row : view.rows) {
    if (row.state != LiveState::waits || !row.missing.empty()) continue;
    for (auto& other : view.rows) {
      if ((observed == Observed::by_host && other.host == row.host) || !is_idle(other)) continue;
      if (row.missing.size() < kMostMissing) row.missing.push_back(other.rank);
      other.lag_ns = std::max(other.lag_ns, row.for_ns);
    }
  }
}

}  // namespace horo::timeline
