// SPDX-License-Identifier: Apache-2.0
#include "timeline/recorder.hpp"

#include <filesystem>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "timeline/save.hpp"

using namespace horo;
using namespace horo::timeline;

namespace {

/// The smallest rings: 64 records. One recorder per process, so all cases share it.
Recorder& recorder() {
  Identity me{.rank = 2, .size = 4, .local_rank = 0, .pid = getpid()};
  me.set_job("unit");
  REQUIRE(Recorder::open({.ring_memory = Bytes{1}, .name_slots = 16, .identity = me}));
  return *Recorder::current();
}

RegionReader reader_of(Recorder& r) {
  auto reader = RegionReader::open(r.memory(), r.index());
  REQUIRE(reader);
  std::vector<Record> old;
  REQUIRE(reader->drain(old));
  return std::move(*reader);
}

}  // namespace

TEST_CASE("records come back in the order in which a thread wrote them") {
  auto& r = recorder();
  auto reader = reader_of(r);
  r.submit(SetId{1}, TensorId{7});
  r.begin({.set = 1, .entry = 12, .bytes = 64}, 7,
          [](std::size_t i) { return static_cast<std::uint32_t>(i + 10); });
  r.end(1, 12);
  std::vector<Record> got;
  const auto lost = reader.drain(got);
  REQUIRE(lost);
  CHECK(*lost == 0);
  REQUIRE(got.size() == 5);
  CHECK(got[0].kind == RecordKind::submit);
  CHECK(got[0].id == 7);
  CHECK(decode_begin(got[1]).tensors == 7);
  std::array<std::uint32_t, kMembersPerRecord> ids{};
  CHECK(decode_members(got[2], ids) == 5);
  CHECK(ids[4] == 14);
  CHECK(decode_members(got[3], ids) == 2);
  CHECK(ids[1] == 16);
  CHECK(got[4].x == 12);
  CHECK(got[0].ticks <= got[4].ticks);
}

TEST_CASE("a full ring keeps the newest records, and a reader hears how many it missed") {
  auto& r = recorder();
  auto reader = reader_of(r);
  for (std::uint32_t i = 0; i < 200; ++i) r.submit(SetId{0}, TensorId{i});
  std::vector<Record> got;
  const auto lost = reader.drain(got);
  REQUIRE(lost);
  CHECK(*lost + got.size() == 200);
  REQUIRE(got.size() >= 63);
  CHECK(got.back().id == 199);
}

TEST_CASE("threads beyond the rings drop their records and count them") {
  auto& r = recorder();
  auto reader = reader_of(r);
  const auto before = reader.dropped();
  std::atomic<int> ready{0};
  std::atomic<bool> leave{false};
  std::vector<std::thread> threads;
  constexpr int kThreads = 12;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      r.submit(SetId{0}, TensorId{1});
      ++ready;
      while (!leave) std::this_thread::yield();
    });
  }
  while (ready < kThreads) std::this_thread::yield();
  const auto dropped = reader.dropped() - before;
  CHECK(dropped >= kThreads - kRings);
  leave = true;
  for (auto& thread : threads) thread.join();
  std::vector<Record> got;
  REQUIRE(reader.drain(got));
  CHECK(got.size() + dropped == kThreads);
  // Their rings are free again.
  std::thread([&] { r.submit(SetId{0}, TensorId{2}); }).join();
  got.clear();
  REQUIRE(reader.drain(got));
  CHECK(got.size() == 1);
}

TEST_CASE("what is drained while a thread writes is never torn") {
  auto& r = recorder();
  auto reader = reader_of(r);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i)
      r.put({.ticks = i,
             .kind = RecordKind::end,
             .id = static_cast<std::uint32_t>(i),
             .x = i,
             .y = i});
  });
  std::uint64_t seen = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<Record> got;
    REQUIRE(reader.drain(got));
    for (const auto& record : got) {
      if (record.kind != RecordKind::end || record.y == 0) continue;
      REQUIRE((record.ticks == record.x && record.x == record.y));
      REQUIRE(record.x > seen);
      seen = record.x;
    }
  }
  stop = true;
  writer.join();
  CHECK(seen > 0);
}

TEST_CASE("the name table keeps the last tensor of a number, long names by both ends") {
  auto& r = recorder();
  auto reader = reader_of(r);
  const std::array<std::int64_t, 2> shape{2, 3};
  r.declare(0, TensorId{3}, {.name = "first", .dtype = 7, .bytes = 24, .shape = shape});
  const std::string longer = "begin" + std::string(300, 'x') + "end";
  r.declare(0, TensorId{3}, {.name = longer, .dtype = 7, .bytes = 24, .shape = shape});
  const auto slot = reader.name_of(0, 3);
  REQUIRE(slot);
  CHECK(slot->name().starts_with("begin"));
  CHECK(slot->name().ends_with("end"));
  CHECK(slot->name().size() == NameSlot::kMostName);
  CHECK(slot->shape() == "[2, 3]");
  CHECK_FALSE(reader.name_of(0, 3 + 16));  // The same place, another tensor.
}

TEST_CASE("records outlive a process that is killed") {
  auto memory = make_regions(2);
  REQUIRE(memory);
  const int fd = memory->value();
  const pid_t child = fork();
  if (child == 0) {
    // The parent's recorder is none here: its memory is not in this process.
    Identity me{.rank = 1, .size = 2, .local_rank = 1, .pid = getpid()};
    me.set_job("killed");
    alignas(RegionHeader) static std::array<std::byte, 4096> bytes{};
    auto& header = *reinterpret_cast<RegionHeader*>(bytes.data());
    header.magic = kRegionMagic;
    header.version = kRegionVersion;
    header.ring_records = 64;
    header.name_slots = 16;
    header.identity = me;
    header.rings[0].head = 1;
    const Record record{.ticks = 5, .kind = RecordKind::submit, .id = 4711};
    const auto base = static_cast<off_t>(kRegionStride);
    const bool put =
        pwrite(fd, bytes.data(), bytes.size(), base) == 4096 &&
        pwrite(fd, &record, sizeof record, base + static_cast<off_t>(ring_offset(64, 16, 0))) == 32;
    if (put) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("horo-unit-{}", getpid());
  const auto saved = save_regions(fd, 2, directory.string());
  REQUIRE(saved);
  CHECK(saved->ranks == 1);
  CHECK(std::filesystem::exists(directory / "rank.1.timeline"));
  CHECK_FALSE(std::filesystem::exists(directory / "rank.0.timeline"));
  std::filesystem::remove_all(directory);
}

TEST_CASE("a region of senseless sizes is refused, an empty one is nobody's") {
  auto memory = make_regions(1);
  REQUIRE(memory);
  CHECK(RegionReader::open(memory->value(), 0).error().code == Errc::not_found);
  const std::array<std::uint32_t, 4> words{kRegionVersion, 48, 16, 0};  // 48: no power of two.
  REQUIRE(pwrite(memory->value(), &kRegionMagic, 8, 0) == 8);
  REQUIRE(pwrite(memory->value(), words.data(), 16, 8) == 16);
  CHECK(RegionReader::open(memory->value(), 0).error().code == Errc::protocol);
}
