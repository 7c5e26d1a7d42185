// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/entry_matcher.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "timeline/input/reading.hpp"
#include "timeline/record/timeline_file.hpp"

using namespace horo::timeline;
namespace timeline = horo::timeline;

namespace {

constexpr std::uint8_t kJoin = 6;  ///< As Begin::operation.

class Collector final : public OperationSink {
 public:
  std::vector<ObservedOperation> operations;
  std::vector<std::string> warnings;
  std::vector<std::pair<int, Interval>> waits;
  std::vector<std::pair<int, std::string>> mismatches;
  std::vector<Interval> steps;
  std::vector<std::pair<std::string, Interval>> clocks;
  std::vector<std::int64_t> starts_at;
  std::vector<UnfinishedOperation> left;
  std::vector<TuningSwitch> switches;
  std::vector<GenerationMark> marks;
  std::vector<DeviceWork> works;

  bool wants_members() const override { return true; }

  void starts(std::int64_t ns) override { starts_at.push_back(ns); }

  void stepped(Interval when) override { steps.push_back(when); }

  void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) override {
    clocks.emplace_back(host, Interval{moved_ns, error_ns});
  }

  void operation(const ObservedOperation& operation) override { operations.push_back(operation); }

  void waited(int rank, Interval when) override { waits.emplace_back(rank, when); }

  void communicated(int /*rank*/, Interval /*when*/) override {}

  void computed(int /*rank*/, Interval /*when*/) override {}

  void worked(const DeviceWork& work) override { works.push_back(work); }

  void no_device_times(int /*rank*/, std::string_view reason, std::int64_t /*ns*/) override {
    warnings.emplace_back(reason);
  }

  void stalled(int /*rank*/, int /*lines*/, std::int64_t /*ns*/) override {}

  void mismatched(int rank, const std::string& name, std::int64_t /*ns*/) override {
    mismatches.emplace_back(rank, name);
  }

  void lost(int /*rank*/, int /*culprit*/, std::int64_t /*ns*/) override {}

  void tuned(const TuningSwitch& change) override { switches.push_back(change); }

  void entered(const GenerationMark& mark) override { marks.push_back(mark); }

  void unfinished(const UnfinishedOperation& what) override { left.push_back(what); }

  void dropped(int /*rank*/, std::uint64_t /*records*/) override {}

  void saw_rank(int /*rank*/, std::string_view /*host*/) override {}

  void warn(std::string_view line) override { warnings.emplace_back(line); }
};

/// The files of a job's ranks in a temporary folder. A tick is a nanosecond.
class Job {
 public:
  Job() { std::filesystem::create_directories(folder_); }

  ~Job() { std::filesystem::remove_all(folder_); }

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void add(int rank, std::string_view host, std::vector<timeline::Record> records,
           std::int64_t clock_ahead = 0, std::string_view file = {},
           std::int64_t taken = 1'000'000) {
    timeline::FileContent content;
    content.about.identity.rank = rank;
    content.about.identity.size = 2;
    content.about.identity.set_host(host);
    content.about.first = {.ticks = 0, .monotonic_ns = 0, .wall_ns = 1'000'000 + clock_ahead};
    content.about.last = {.ticks = taken, .monotonic_ns = taken, .wall_ns = 0};
    content.records = std::move(records);
    timeline::NameSlot slot;
    slot.sequence = 2;
    slot.id = 7;
    slot.name_bytes = 4;
    std::string_view("grad").copy(slot.text.data(), 4);
    content.names.push_back(slot);
    timeline::NameSlot join;
    join.sequence = 2;
    join.id = 9;
    join.operation = kJoin;
    join.name_bytes = 4;
    std::string_view("join").copy(join.text.data(), 4);
    content.names.push_back(join);
    const auto name = file.empty() ? fmt::format("rank.{}.timeline", rank) : std::string(file);
    std::ofstream(folder_ / name) << encode_file(content);
  }

  Collector read() const {
    Collector collector;
    REQUIRE(read_all({folder_.string()}, collector));
    return collector;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("horo-entries-{}", getpid());
};

timeline::Record submits(std::uint64_t at, std::uint32_t tensor = 7) {
  return {.ticks = at, .kind = timeline::RecordKind::submit, .id = tensor};
}

std::vector<timeline::Record> life(std::uint64_t submitted, std::uint64_t begun,
                                   std::uint64_t ended, std::uint64_t entry = 5) {
  return {{.ticks = submitted, .kind = timeline::RecordKind::submit, .id = 7},
          timeline::encode(
              {.mover = timeline::Mover::shm, .tensors = 1, .entry = entry, .bytes = 64}, begun),
          {.ticks = begun, .kind = timeline::RecordKind::members, .detail = 1, .id = 7},
          {.ticks = ended, .kind = timeline::RecordKind::end, .x = entry}};
}

}  // namespace

TEST_CASE("the records of two ranks about one entry become one operation") {
  Job job;
  job.add(0, "a", life(100, 520, 600));
  job.add(1, "a", life(500, 510, 590));
  const auto got = job.read();
  CHECK(got.warnings.empty());
  REQUIRE(got.operations.size() == 1);
  const auto& operation = got.operations[0];
  CHECK(operation.name == "grad");
  CHECK(operation.kind == "ALLREDUCE");
  CHECK(operation.mover == "SHM");
  CHECK(operation.bytes == 64);
  REQUIRE(operation.arrivals.size() == 2);
  CHECK(operation.agreed - operation.submitted == 400);
  CHECK(operation.begun - operation.agreed == 10);
  CHECK(operation.ended - operation.begun == 90);
}

TEST_CASE("an operation has the time of the rank whose device worked longest for it") {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    auto records = life(100, 510, 600);
    const auto lasted = static_cast<std::uint64_t>(rank == 0 ? 32 : 64);
    records.insert(
        records.end() - 1,
        timeline::encode(
            timeline::RecordedDevicePhase{
                .entry = 5, .phase = DevicePhase::ipc, .before_ns = 80, .lasted_ns = lasted},
            599));
    job.add(rank, "a", std::move(records));
  }
  const auto got = job.read();
  REQUIRE(got.operations.size() == 1);
  CHECK(got.operations[0].device_ns == 64);
  REQUIRE(got.works.size() == 2);
  CHECK(got.works[0].activity == "IPC_ALLREDUCE");
  CHECK(got.works[0].when.from == 1'000'000 + 599 - 80);
  CHECK(got.works[1].when.to - got.works[1].when.from == 64);
}

TEST_CASE("an operation has the path of its bucket between the hosts, and the reason") {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    auto records = life(100, 510, 600);
    records[1] = timeline::encode({.mover = timeline::Mover::gloo,
                                   .reason = timeline::PathReason::too_small,
                                   .tensors = 1,
                                   .entry = 5,
                                   .bytes = 64},
                                  510);
    job.add(rank, rank == 0 ? "a" : "b", records);
  }
  const auto got = job.read();
  REQUIRE(got.operations.size() == 1);
  CHECK(got.operations[0].mover == "GLOO");
  CHECK(got.operations[0].path == "whole");
  CHECK(got.operations[0].path_reason == "too small for two more steps");
}

TEST_CASE("copies count as packing, not as data movement") {
  Job job;
  auto records = life(100, 520, 600);
  records.insert(records.begin() + 3,
                 encode(timeline::Copies{.entry = 5, .in = 32, .out = 16}, 600));
  job.add(0, "a", records);
  job.add(1, "a", life(500, 510, 600));
  const auto got = job.read();
  REQUIRE(got.operations.size() == 1);
  const auto& operation = got.operations[0];
  CHECK(operation.packing_ns == 48);
  CHECK(operation.begun == operation.agreed + 10 + 32);
  CHECK(operation.ended - operation.begun == 90 - 48);
}

TEST_CASE("all tensors of a fused entry are named") {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    job.add(rank, "a",
            {{.ticks = 1, .kind = timeline::RecordKind::submit, .id = 7},
             timeline::encode({.mover = timeline::Mover::shm, .tensors = 2, .entry = 0}, 2),
             {.ticks = 2, .kind = timeline::RecordKind::members, .detail = 2, .id = 7, .x = 8},
             {.ticks = 3, .kind = timeline::RecordKind::end, .x = 0}});
  }
  const auto got = job.read();
  REQUIRE(got.operations.size() == 1);
  CHECK(got.operations[0].name == "grad");
  CHECK(got.operations[0].members == std::vector<std::string>{"grad", "tensor 8"});
}

namespace {

/// Rank 0 submits "grad" at 700, after an entry of both ranks that ended at 600; rank 1 does not.
struct OneWaits {
  Job job;
  std::vector<Record> first = life(100, 520, 600);
  std::vector<Record> second = life(500, 510, 590);

  OneWaits() { first.push_back(submits(700)); }

  void expect_wait_of_rank_0(std::int64_t waited) {
    const auto got = job.read();
    REQUIRE(got.left.size() == 1);
    CHECK(got.left[0].name == "grad");
    CHECK(got.left[0].waiting == std::vector{0});
    CHECK(got.left[0].missing == std::vector{1});
    CHECK(got.left[0].when.to - got.left[0].when.from == waited);
  }

  void expect_no_wait() { CHECK(job.read().left.empty()); }

  void add_both() {
    job.add(0, "a", first);
    job.add(1, "a", second);
  }
};

}  // namespace

TEST_CASE_METHOD(OneWaits, "a tensor that one rank never submits is reported with that rank") {
  SECTION("up to the end of the records") {
    add_both();
    expect_wait_of_rank_0(1'000'000 - 700);
  }
  SECTION("up to the time that the records of all ranks cover") {
    job.add(0, "a", first);
    job.add(1, "a", second, 0, {}, 900);
    expect_wait_of_rank_0(900 - 700);
  }
  SECTION("up to the loss of a rank") {
    first.push_back({.ticks = 800, .kind = timeline::RecordKind::lost});
    add_both();
    expect_wait_of_rank_0(800 - 700);
  }
}

TEST_CASE_METHOD(OneWaits, "a rank that has joined keeps no rank waiting until its join ends") {
  second.push_back(submits(600, 9));
  SECTION("the join lasts") {
    add_both();
    expect_no_wait();
  }
  SECTION("the join has ended") {
    for (const auto& record : life(610, 620, 630, 6)) second.push_back(record);
    add_both();
    expect_wait_of_rank_0(1'000'000 - 700);
  }
}

TEST_CASE_METHOD(OneWaits, "a wait is not reported where the records do not prove it") {
  SECTION("both ranks have submitted") {
    second.push_back(submits(710));
    add_both();
  }
  SECTION("the other rank waits for a tensor whose name is lost") {
    second.push_back(submits(710, 8));
    add_both();
  }
  SECTION("the other rank's records begin later") {
    second = {{.ticks = 5'000, .kind = timeline::RecordKind::wait, .x = 4'900}};
    first = {submits(700)};
    add_both();
  }
  SECTION("the other rank has no records") {
    job.add(0, "a", first);
  }
  expect_no_wait();
}

TEST_CASE("an entry of which one rank's records were overwritten still counts") {
  Job job;
  job.add(0, "a", life(100, 520, 600));
  auto half = life(500, 510, 590);
  half.erase(half.begin(), half.begin() + 3);
  job.add(1, "a", half);
  const auto got = job.read();
  REQUIRE(got.operations.size() == 1);
  CHECK(got.operations[0].arrivals.size() == 1);
}

TEST_CASE("a clock that is behind is corrected, with a warning") {
  Job job;
  auto first = life(100, 520, 600);
  for (const auto& record : life(2100, 2520, 2600, 6)) first.push_back(record);
  auto second = life(500, 510, 590);
  for (const auto& record : life(2500, 2510, 2590, 6)) second.push_back(record);
  job.add(0, "a", first, -300);  // Begins at 220 what the other submits at 500.
  job.add(1, "b", second);
  const auto got = job.read();
  REQUIRE(got.warnings.size() == 1);
  CHECK(got.warnings[0].find("clock of host a is behind that of b") != std::string::npos);
  REQUIRE(got.operations.size() == 2);
  CHECK(got.operations[1].agreed - got.operations[1].submitted <= 420);
  CHECK(got.operations[1].agreed <= got.operations[1].begun);
  REQUIRE(got.clocks.size() == 1);
  CHECK(got.clocks[0].first == "b");
  CHECK(got.clocks[0].second.from < 0);
}

TEST_CASE("a clock with a bound on one side only is corrected just far enough") {
  Job job;
  constexpr std::uint8_t kBroadcast = 2;  // A root is done before the others begin.
  const timeline::Begin what{.operation = kBroadcast, .tensors = 1, .entry = 5};
  auto ahead = life(100, 520, 600);
  ahead[1] = timeline::encode(what, 520);
  auto behind = life(0, 10, 90);
  behind[1] = timeline::encode(what, 10);
  behind.erase(behind.begin());  // Its submission was overwritten.
  job.add(0, "a", ahead);
  job.add(1, "b", behind);
  const auto got = job.read();
  REQUIRE(got.clocks.size() == 1);
  CHECK(got.clocks[0].second.from == 90);
  CHECK(got.clocks[0].second.to == -1);
  REQUIRE(got.warnings.size() == 1);
  CHECK(got.warnings[0] ==
        "the clock of host b is behind that of a by 0.000 ms or more; records are moved");
}

TEST_CASE("entries with the same numbers in another session are other operations") {
  Job job;
  auto first = life(100, 520, 600);  // The earlier session ended in the middle of an entry.
  for (const auto& record : life(2100, 2520, 2600)) first.push_back(record);
  job.add(0, "a", first);
  job.add(1, "a", life(2500, 2530, 2590));
  const auto got = job.read();
  REQUIRE(got.operations.size() == 2);
  CHECK(got.operations[0].arrivals.size() == 1);
  CHECK(got.operations[1].arrivals.size() == 2);
  CHECK(got.operations[1].submitted == got.operations[0].submitted + 2000);
}

TEST_CASE("a mismatch is reported, and does not count as waiting") {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    auto records = life(100, 520, 600);
    records.push_back({.ticks = 700, .kind = timeline::RecordKind::submit, .id = 7});
    records.push_back({.ticks = 800, .kind = timeline::RecordKind::mismatch, .id = 7});
    job.add(rank, "a", records);
  }
  const auto got = job.read();
  CHECK(got.operations.size() == 1);
  REQUIRE(got.mismatches.size() == 2);
  CHECK(got.mismatches[1].second == "grad");
  REQUIRE(got.steps.size() == 1);
  CHECK(got.steps[0].to - got.steps[0].from == 600);
}

TEST_CASE("files of two jobs are not mixed") {
  Job job;
  job.add(0, "a", life(1, 2, 3));
  timeline::FileContent other;
  other.about.identity.set_job("other");
  const auto path = std::filesystem::temp_directory_path() / fmt::format("horo-other-{}", getpid());
  std::ofstream(path) << encode_file(other);
  Collector collector;
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("horo-entries-{}", getpid());
  const auto got = read_all({folder.string(), path.string()}, collector);
  REQUIRE_FALSE(got);
  CHECK(got.error().message.find("different jobs, '' and 'other'") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a timeline begins with its first record, even if a wait began earlier") {
  Job job;
  auto records = life(100, 520, 600);
  records.push_back({.ticks = 610, .kind = timeline::RecordKind::wait, .id = 7, .x = 20, .y = 0});
  records.push_back({.ticks = 620, .kind = timeline::RecordKind::wait, .id = 7, .x = 900, .y = 0});
  job.add(0, "a", records);
  const auto got = job.read();
  REQUIRE(got.waits.size() == 2);
  CHECK(got.waits[0].second.to - got.waits[0].second.from == 510);
  CHECK(got.waits[1].second.to == got.waits[1].second.from);
}

TEST_CASE("a file that is given twice is read once, with a warning") {
  Job job;
  job.add(0, "a", life(100, 520, 600));
  job.add(1, "a", life(500, 510, 590));
  job.add(1, "a", life(500, 510, 590), 0, "rank.1.copy.timeline");
  const auto got = job.read();
  CHECK(got.operations.size() == 1);
  REQUIRE(got.warnings.size() == 1);
  CHECK(got.warnings[0].starts_with("rank 1 has two files: '"));
}

namespace {

/// Traces in a temporary folder.
class Traces {
 public:
  Traces() { std::filesystem::create_directories(folder_); }

  ~Traces() { std::filesystem::remove_all(folder_); }

  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  /// An operation at each of `times`, in microseconds.
  std::string add(std::string_view name, const std::vector<int>& times) {
    auto path = (folder_ / name).string();
    std::ofstream file(path);
    file << "[";
    for (const int us : times) {
      file << fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "nccl_{}", "ts": {}, "dur": 1}},)", us, us);
    }
    file << "]";
    return path;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("horo-traces-{}", getpid());
};

}  // namespace

TEST_CASE("traces are read in order of their times, not of their names") {
  Traces traces;
  const auto late = traces.add("a", {5'000'000});
  const auto early = traces.add("b", {-7, 3});
  for (const auto& paths : {std::vector{late, early}, std::vector{early, late}}) {
    Collector collector;
    REQUIRE(read_all(paths, collector));
    REQUIRE(collector.operations.size() == 3);
    CHECK(collector.operations[0].name == "nccl_-7");
    CHECK(collector.operations[2].name == "nccl_5000000");
  }
}

TEST_CASE("the beginning of a trace is known before it is read") {
  Traces traces;
  const auto first = traces.add("a", {2'000'000, 1'000'000});
  const auto second = traces.add("b", {4'000'000, 3'000'000});
  Collector collector;
  report_start({second, first, "/nowhere"}, collector);
  CHECK(collector.operations.empty());
  REQUIRE(collector.starts_at.size() == 2);
  CHECK(std::min(collector.starts_at[0], collector.starts_at[1]) == 1'000'000'000);
}

TEST_CASE("a trace read together with ranks' timelines gives a warning") {
  Traces traces;
  Job job;
  job.add(0, "a", life(100, 520, 600));
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("horo-entries-{}", getpid());
  Collector collector;
  REQUIRE(read_all({folder.string(), traces.add("a", {1})}, collector));
  CHECK(collector.operations.size() == 2);
  REQUIRE(collector.warnings.size() == 1);
  CHECK(collector.warnings[0].starts_with("a trace and the timelines of ranks"));
}

TEST_CASE("a change of the tuning is reported once, with the values before and after it") {
  const timeline::RecordedTuning before{.fusion_threshold = 64 << 20, .wake_delay_ns = 50'000};
  const timeline::RecordedTuning after{
      .after = true, .fusion_threshold = 2 << 20, .cycle_ns = 1'500'000, .wake_delay_ns = 50'000};
  Job job;
  for (int rank = 0; rank < 2; ++rank)
    job.add(rank, "a", {encode(before, 300), encode(after, 300), encode(after, 400)});
  const auto read = job.read();
  // The last record lacks its first half, which the ring has lost.
  REQUIRE(read.switches.size() == 1);
  CHECK(read.switches.front().ns == 1'000'300);
  CHECK(read.switches.front().changes ==
        "fusion.threshold 64 MiB to 2 MiB, cycle.time 0 ms to 1.5 ms");
}

TEST_CASE("each rank that enters a generation of an elastic job is reported with its time") {
  const timeline::RecordedGeneration entered{.generation = 2, .ranks = 3, .survivors = 2};
  Job job;
  for (int rank = 0; rank < 2; ++rank) job.add(rank, "a", {encode(entered, 300)});
  const auto read = job.read();
  REQUIRE(read.marks.size() == 2);
  CHECK(read.marks.front().ns == 1'000'300);
  CHECK((read.marks.front().generation == 2 && read.marks.front().ranks == 3));
  CHECK(read.marks.front().survivors == 2);
}
