// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/recorder.hpp"

#include <algorithm>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

#include "timeline/record/name_hash.hpp"
#include "timeline/record/save_timelines.hpp"

using namespace horo;
using namespace horo::timeline;

namespace {

/// Has the smallest rings, of 64 records. A process has one recorder, so all cases share it.
Recorder& recorder() {
  RankIdentity me{.rank = 2, .size = 4, .local_rank = 0, .pid = getpid()};
  me.set_job("unit");
  REQUIRE(Recorder::open({.ring_memory = Bytes{1}, .name_slots = 16, .identity = me}));
  return *Recorder::current();
}

RegionReader reader_of(Recorder& r) {
  auto reader = RegionReader::open(r.memory(), r.index());
  REQUIRE(reader);
  std::vector<Record> old;
  REQUIRE(reader->drain(old));
  return *reader;
}

}  // namespace

TEST_CASE("records come back in the order in which a thread wrote them") {
  auto& r = recorder();
  auto reader = reader_of(r);
  r.submit(1, TensorId{7}, r.now());
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

TEST_CASE("a full ring keeps the newest records, and the reader learns how many it missed") {
  auto& r = recorder();
  auto reader = reader_of(r);
  for (std::uint32_t i = 0; i < 200; ++i) r.submit(0, TensorId{i}, r.now());
  std::vector<Record> got;
  const auto lost = reader.drain(got);
  REQUIRE(lost);
  CHECK(*lost + got.size() >= 200);
  REQUIRE(got.size() >= 63);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].id == 200 - got.size() + i);
  got.clear();
  for (std::uint64_t i = 0; i < 200; ++i) r.end(0, i);
  REQUIRE(reader.drain(got).value() + got.size() == 200);
  REQUIRE(got.size() == 63);
  CHECK(got.back().x == 199);
}

TEST_CASE("submissions keep set, tensor and time with any time between them") {
  auto& r = recorder();
  auto reader = reader_of(r);

  struct Given {
    std::uint16_t set;
    std::uint32_t id;
    std::uint64_t ticks;
  };

  std::vector<Given> given;
  std::uint64_t ticks = 1'000'003;
  for (std::uint32_t i = 0; i < 40; ++i) {
    given.push_back({static_cast<std::uint16_t>(i * 1700), i * 419'431, ticks});
    ticks += std::uint64_t{1} << i;  // From one tick to minutes.
  }
  given.push_back({7, 0xffffffff, ticks});
  given.push_back({7, 1, ticks - 5});  // Clocks may jump.
  for (std::size_t i = 0; i < given.size(); ++i) {
    r.submit(given[i].set, TensorId{given[i].id}, given[i].ticks);
    if (i % 3 == 0) r.end(0, 1);
  }
  std::vector<Record> got;
  REQUIRE(reader.drain(got).value() == 0);
  std::erase_if(got, [](const Record& one) { return one.kind != RecordKind::submit; });
  REQUIRE(got.size() == given.size());
  std::ranges::stable_sort(got, {}, &Record::ticks);
  std::ranges::stable_sort(given, {}, &Given::ticks);
  for (std::size_t i = 0; i < given.size(); ++i) {
    CHECK(got[i].set == given[i].set);
    CHECK(got[i].id == given[i].id);
    CHECK(got[i].ticks <= given[i].ticks);
    CHECK(got[i].ticks + SubmitWord::kTicks > given[i].ticks);
  }
}

TEST_CASE("submissions that are drained while a thread makes them are never torn") {
  auto& r = recorder();
  auto reader = reader_of(r);
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> begun{0};
  std::thread writer([&] {
    for (std::uint32_t i = 1; !stop; ++i) {
      r.submit(9, TensorId{i % SubmitWord::kMostId}, std::uint64_t{i} * SubmitWord::kTicks);
      begun = i;
    }
  });
  while (begun == 0) std::this_thread::yield();
  std::uint64_t seen = 0;
  bool whole = false;  // Nothing is missing up to here.
  for (int round = 0; round < 2000 || seen == 0; ++round) {
    std::vector<Record> got;
    const auto lost = reader.drain(got);
    REQUIRE(lost);
    if (*lost == 0 && whole && !got.empty())
      REQUIRE(got.front().ticks == (seen + 1) * SubmitWord::kTicks);
    whole = *lost == 0 ? whole || !got.empty() : false;
    for (const auto& record : got) {
      const auto number = record.ticks / SubmitWord::kTicks;
      REQUIRE(record.kind == RecordKind::submit);
      REQUIRE(record.set == 9);
      REQUIRE(number % SubmitWord::kMostId == record.id);
      REQUIRE(number > seen);
      seen = number;
    }
  }
  stop = true;
  writer.join();
}

TEST_CASE("members with consecutive numbers come back in the order of the entry") {
  auto& r = recorder();
  auto reader = reader_of(r);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 300; ++i) ids.push_back(1000 + i);
  for (const std::uint32_t i : {7U, 5U, 900U, 13U}) ids.push_back(i);
  for (std::uint32_t i = 0; i < 9; ++i) ids.push_back(8 - i);
  r.begin({.set = 3, .entry = 5}, ids.size(), [&](std::size_t i) { return ids[i]; });
  std::vector<Record> got;
  REQUIRE(reader.drain(got).value() == 0);
  REQUIRE(!got.empty());
  CHECK(decode_begin(got.front()).tensors == ids.size());
  std::vector<std::uint32_t> back;
  for (std::size_t i = 1; i < got.size(); ++i) {
    REQUIRE(got[i].kind == RecordKind::members);
    CHECK(got[i].ticks == got.front().ticks);
    CHECK(got[i].set == 3);
    std::array<std::uint32_t, kMembersPerRecord> held{};
    const auto count = decode_members(got[i], held);
    back.insert(back.end(), held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count));
  }
  CHECK(back == ids);
}

TEST_CASE("threads without a ring drop their records and count them") {
  auto& r = recorder();
  auto reader = reader_of(r);
  const auto before = reader.dropped();
  std::atomic<int> ready{0};
  std::atomic<bool> leave{false};
  std::vector<std::thread> threads;
  constexpr int kThreads = 12;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      r.submit(0, TensorId{1}, r.now());
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
  std::thread([&] { r.submit(0, TensorId{2}, r.now()); }).join();
  got.clear();
  REQUIRE(reader.drain(got));
  CHECK(got.size() == 1);
}

TEST_CASE("records that are drained while a thread writes are never torn") {
  auto& r = recorder();
  auto reader = reader_of(r);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i) {
      r.put({.ticks = i,
             .kind = RecordKind::end,
             .id = static_cast<std::uint32_t>(i),
             .x = i,
             .y = i});
    }
  });
  std::uint64_t seen = 0;
  for (int round = 0; round < 2000 || seen == 0; ++round) {
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

TEST_CASE("the name table keeps the last tensor of a number, and both ends of long names") {
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
  std::vector<Record> records;
  REQUIRE(reader.drain(records));
  std::vector<std::uint64_t> hashes;
  for (const auto& record : records) {
    if (record.kind == RecordKind::declare && record.id == 3) hashes.push_back(record.y);
  }
  CHECK(hashes == std::vector{hash_of_name("first"), hash_of_name(slot->name())});
}

TEST_CASE("where files may not be large enough for records, the error names ulimit -f") {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{.rlim_cur = 2 * kRegionStride - 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const auto refused = make_regions(2);
  const auto made = make_regions(1);
  setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE(!refused);
  CHECK(refused.error().message ==
        "files may have 134217727 bytes here, 134217728 are needed; raise ulimit -f to 131072");
  CHECK(made);
}

TEST_CASE("records outlive a process that is killed") {
  auto memory = make_regions(2);
  REQUIRE(memory);
  const int fd = memory->value();
  const pid_t child = fork();
  if (child == 0) {
    // The parent's recorder does not exist here, because its memory is not in this process.
    RankIdentity me{.rank = 1, .size = 2, .local_rank = 1, .pid = getpid()};
    me.set_job("killed");
    alignas(RegionHeader) static std::array<std::byte, 4096> bytes{};
    auto& header = *reinterpret_cast<RegionHeader*>(bytes.data());
    header.magic = kRegionMagic;
    header.version = kRegionVersion;
    header.ring_records = 64;
    header.name_slots = 16;
    header.identity = me;
    header.rings[0].submitted = 2;
    const std::array words{SubmitWord::kBase | 5, SubmitWord::of(0, 4711, 0)};
    const auto base = static_cast<off_t>(kRegionStride);
    const bool put =
        pwrite(fd, bytes.data(), bytes.size(), base) == 4096 &&
        pwrite(fd, words.data(), 16, base + static_cast<off_t>(words_offset(64, 16, 0))) == 16;
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
  CHECK(std::filesystem::status(directory / "rank.1.timeline").permissions() ==
        std::filesystem::perms(0600));
  CHECK_FALSE(std::filesystem::exists(directory / "rank.0.timeline"));
  std::filesystem::remove_all(directory);
}

TEST_CASE("the requested time before the last record is saved, however long ago that was") {
  auto& r = recorder();
  REQUIRE(Recorder::open({.keep = std::chrono::seconds(2), .identity = {.rank = 2}}));
  const auto hour_ago = r.now() - ticks_in(std::chrono::hours(1));
  // The rank has hung for an hour.
  const auto memory = make_regions(1);
  REQUIRE(memory);
  std::vector<std::byte> region(region_bytes(64, 16));
  REQUIRE(pread(r.memory(), region.data(), region.size(), 0) ==
          static_cast<ssize_t>(region.size()));
  auto& header = *reinterpret_cast<RegionHeader*>(region.data());
  for (auto& ring : header.rings) ring.head = ring.submitted = 0;
  header.rings[0].head = 3;
  auto* const records = reinterpret_cast<Record*>(region.data() + ring_offset(64, 16, 0));
  for (const auto second : {0U, 3U, 4U}) {
    *(records + (second == 0 ? 0 : second - 2)) = {
        .ticks = hour_ago + ticks_in(std::chrono::seconds(second)),
        .kind = RecordKind::submit,
        .id = second};
  }
  REQUIRE(pwrite(memory->value(), region.data(), region.size(), 0) ==
          static_cast<ssize_t>(region.size()));
  const auto content = snapshot(memory->value(), 0);
  REQUIRE(content);
  REQUIRE(content->records.size() == 2);
  CHECK(content->records[0].id == 3);
  CHECK(content->records[1].id == 4);
}

TEST_CASE("operations whose submissions were overwritten are not saved") {
  auto& r = recorder();
  REQUIRE(Recorder::open({.identity = {.rank = 2}}));
  const auto operation = [&](std::uint32_t entry) {
    for (std::uint32_t i = 0; i < 100; ++i) r.submit(0, TensorId{i}, r.now());
    r.begin({.set = 0, .entry = entry}, 100,
            [](std::size_t i) { return static_cast<std::uint32_t>(i); });
    r.end(0, entry);
  };
  for (std::uint32_t entry = 1; entry <= 20; ++entry) operation(entry);
  const auto content = snapshot(r.memory(), 0);
  REQUIRE(content);
  const auto least = [&](RecordKind kind) {
    std::uint64_t ticks = ~std::uint64_t{0};
    for (const auto& record : content->records) {
      if (record.kind == kind) ticks = std::min(ticks, record.ticks);
    }
    return ticks;
  };
  CHECK(least(RecordKind::begin) >= least(RecordKind::submit));
  CHECK(least(RecordKind::end) >= least(RecordKind::submit));
}

TEST_CASE("a region with damaged sizes is refused, and an empty region has no rank") {
  auto memory = make_regions(1);
  REQUIRE(memory);
  CHECK(RegionReader::open(memory->value(), 0).error().code == Errc::not_found);
  const std::array<std::uint32_t, 4> words{kRegionVersion, 48, 16, 0};  // 48: no power of two.
  REQUIRE(pwrite(memory->value(), &kRegionMagic, 8, 0) == 8);
  REQUIRE(pwrite(memory->value(), words.data(), 16, 8) == 16);
  CHECK(RegionReader::open(memory->value(), 0).error().code == Errc::protocol);
}
