// SPDX-License-Identifier: Apache-2.0
// bench_timeline_files FOLDER RANKS STEPS writes the timeline files that the recorders of a
// training would leave: steps of 161 tensors in nine operations, each with a wait on every rank.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include <fmt/format.h>

#include "timeline/record/record.hpp"
#include "timeline/record/timeline_file.hpp"

namespace {

using namespace horo::timeline;

constexpr std::uint32_t kTensors = 161;
constexpr std::uint32_t kFused = 20;
constexpr std::uint64_t kBytes = 12'000'000;
constexpr std::uint64_t kSubmitNs = 5'000;

/// Time in nanoseconds; one tick is one nanosecond here.
struct Clock {
  std::uint64_t now = 1'000;
  std::mt19937 draw;

  std::uint64_t pass(std::uint64_t ns) {
    now += ns / 2 + draw() % ns;
    return now;
  }
};

void name_tensors(FileContent& content) {
  for (std::uint32_t i = 0; i < kTensors; ++i) {
    NameSlot slot{};
    slot.sequence = 2;
    slot.id = i;
    slot.dtype = 7;
    const auto name = fmt::format("layer{}.{}.conv.weight", i / 4, i % 4);
    slot.name_bytes = static_cast<std::uint8_t>(name.copy(slot.text.data(), name.size()));
    content.names.push_back(slot);
  }
}

void add_members(FileContent& content, std::uint32_t first, std::uint32_t count,
                 std::uint64_t ticks) {
  constexpr std::uint32_t kPerRecord = 5;
  for (std::uint32_t i = 0; i < count; i += kPerRecord) {
    const auto held = std::min(kPerRecord, count - i);
    const std::uint64_t id = first + i;
    content.records.push_back({.ticks = ticks,
                               .kind = RecordKind::members,
                               .detail = static_cast<std::uint8_t>(held),
                               .id = first + i,
                               .x = (id + 1) | (id + 2) << 32U,
                               .y = (id + 3) | (id + 4) << 32U});
  }
}

void add_step(FileContent& content, std::uint64_t step, Clock& clock, Clock& own) {
  clock.pass(2'000'000);
  own.now = clock.now;
  for (std::uint32_t i = 0; i < kTensors; ++i)
    content.records.push_back({.ticks = own.pass(kSubmitNs), .kind = RecordKind::submit, .id = i});
  clock.pass(kSubmitNs * kTensors * 2);
  std::uint64_t entry = step * ((kTensors + kFused - 1) / kFused);
  for (std::uint32_t first = 0; first < kTensors; first += kFused, ++entry) {
    const auto count = std::min(kFused, kTensors - first);
    const auto began = clock.pass(20'000);
    content.records.push_back(encode(
        Begin{.mover = Mover::shm, .tensors = count, .entry = entry, .bytes = kBytes}, began));
    add_members(content, first, count, began);
    const auto ended = clock.pass(500'000);
    content.records.push_back({.ticks = ended, .kind = RecordKind::end, .x = entry});
    content.records.push_back({.ticks = ended + 900 + own.draw() % 300,
                               .kind = RecordKind::wait,
                               .id = first,
                               .x = ended - own.draw() % 300'000});
  }
}

bool write_rank(const std::string& folder, int rank, int ranks, std::uint64_t steps) {
  FileContent content;
  auto& about = content.about;
  about.identity.rank = rank;
  about.identity.size = ranks;
  about.identity.set_host("node");
  about.identity.set_job("bench");
  name_tensors(content);
  Clock clock;  // All ranks have the same clock.
  Clock own{.draw = std::mt19937(static_cast<unsigned>(rank + 1))};
  for (std::uint64_t step = 0; step < steps; ++step) add_step(content, step, clock, own);
  const auto last = static_cast<std::int64_t>(clock.now);
  about.last = {.ticks = last, .monotonic_ns = last, .wall_ns = last};
  std::ofstream file(fmt::format("{}/rank.{}.timeline", folder, rank), std::ios::binary);
  file << encode_file(std::move(content));
  file.close();
  return !file.fail();
}

template <typename T>
bool parse(const char* text, T& value) {
  const char* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  return parsed.ec == std::errc{} && parsed.ptr == end && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span words(argv, static_cast<std::size_t>(argc));
  int ranks = 0;
  std::uint64_t steps = 0;
  if (words.size() != 4 || !parse(words[2], ranks) || !parse(words[3], steps)) {
    fmt::print(stderr, "usage: bench_timeline_files FOLDER RANKS STEPS\n");
    return 2;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (write_rank(words[1], rank, ranks, steps)) continue;
    fmt::print(stderr, "bench_timeline_files: cannot write files in '{}'\n", words[1]);
    return 1;
  }
  return 0;
}
