// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "timeline/chrome/chrome_reader.hpp"
#include "timeline/chrome/chrome_writer.hpp"
#include "timeline/chrome/trace_file.hpp"
#include "timeline/record/name_hash.hpp"

using namespace horo;
using namespace horo::timeline;

namespace {

ByteSource source_of(std::string text, std::size_t piece) {
  return [text = std::move(text), piece, at = std::size_t{0}](
             char* to, std::size_t room) mutable -> Result<std::size_t> {
    const auto count = std::min({room, piece, text.size() - at});
    std::memcpy(to, text.data() + at, count);
    at += count;
    return count;
  };
}

/// A copy of an event, which outlives the reader's texts.
struct Kept {
  explicit Kept(const ChromeEvent& event)
      : phase(event.phase),
        name(event.name),
        category(event.category),
        pid(event.pid),
        tid(event.tid),
        ts_us(event.ts_us),
        duration_us(event.duration_us),
        rank(event.rank),
        arguments(event.arguments.begin(), event.arguments.end()) {}

  bool operator==(const Kept&) const = default;

  std::string argument(std::string_view key) const {
    for (const auto& [known, value] : arguments) {
      if (known == key) return value;
    }
    return {};
  }

  char phase;
  std::string name;
  std::string category;
  std::string pid;
  std::string tid;
  double ts_us;
  double duration_us;
  int rank;
  std::vector<std::pair<std::string, std::string>> arguments;
};

struct Read {
  std::vector<Kept> events;
  Result<ChromeOutcome> outcome;
};

Read read(const std::string& text, std::size_t piece = 1 << 16) {
  std::vector<Kept> events;
  auto outcome = read_chrome(source_of(text, piece),
                             [&events](const ChromeEvent& event) { events.emplace_back(event); });
  return {std::move(events), std::move(outcome)};
}

NameSlot slot_of(std::uint32_t id, std::string_view name, std::uint8_t operation = 0) {
  NameSlot slot;
  slot.sequence = 2;
  slot.id = id;
  slot.operation = operation;
  slot.dtype = 7;
  slot.name_bytes = static_cast<std::uint8_t>(name.copy(slot.text.data(), NameSlot::kMostName));
  slot.shape_bytes = 3;
  std::memcpy(slot.text.data() + NameSlot::kMostName, "[4]", 3);
  return slot;
}

/// "B NEGOTIATE_ALLREDUCE 1", "E 1", ...: phase, name and row of each event but the rows' names.
std::vector<std::string> in_short(std::string_view events) {
  std::vector<std::string> lines;
  for (const auto& event : read(fmt::format("[{}]", events)).events) {
    if (event.phase == 'M') continue;
    auto line = std::string(1, event.phase);
    if (!event.name.empty()) line += " " + event.name;
    if (!event.pid.empty()) line += " " + event.pid;
    lines.push_back(line);
  }
  return lines;
}

Record submit(std::uint32_t id) {
  return {.kind = RecordKind::submit, .id = id};
}

Record member(std::uint32_t id) {
  return {.kind = RecordKind::members, .detail = 1, .id = id};
}

Record end(std::uint64_t entry) {
  return {.kind = RecordKind::end, .x = entry};
}

Record begin(std::uint64_t entry, std::uint32_t tensors, std::uint8_t operation = 0) {
  return encode({.operation = operation, .mover = Mover::shm, .tensors = tensors, .entry = entry},
                0);
}

}  // namespace

TEST_CASE("a tensor is shown in negotiation, in the queue and moving") {
  ChromeWriter writer({.mark_cycles = true}, [](int, std::uint16_t, std::uint32_t id) {
    return std::optional(slot_of(id, id == 1 ? "a\"b" : "c"));
  });
  std::int64_t ns = 0;
  for (const auto& record :
       {submit(1), submit(2), begin(0, 1), member(1), begin(1, 1), member(2), end(0), end(1)})
    writer.take(0, record, ns += 1000);
  const auto events = writer.events();
  CHECK(in_short(events) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 0 1", "B NEGOTIATE_ALLREDUCE 2",
                                 "X 0 2", "i CYCLE_START", "E 1", "B ALLREDUCE 1", "i CYCLE_START",
                                 "E 2", "B ALLREDUCE 2", "B QUEUE 2", "B SHM_ALLREDUCE 1", "E 1",
                                 "E 1", "E 2", "B SHM_ALLREDUCE 2", "E 2", "E 2"});
  const auto all = read(fmt::format("[{}]", events));
  CHECK(all.events.front().argument("name") == "a\"b");
  CHECK(all.events.back().argument("dtype") == "float32");
  CHECK(all.events.back().argument("shape") == "[4]");
  CHECK(all.events.back().ts_us == 8);
}

TEST_CASE("the end of the data movement has the bucket's path between the hosts, and the reason") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  const auto begins =
      encode({.mover = Mover::gloo, .reason = PathReason::too_small, .tensors = 1}, 0);
  for (const auto& record : {submit(1), begins, member(1), end(0)}) writer.take(0, record, 1000);
  const auto all = read(fmt::format("[{}]", writer.events()));
  REQUIRE(all.events.size() >= 3);
  const auto& moved = all.events[all.events.size() - 2];
  CHECK(moved.argument("path") == "whole");
  CHECK(moved.argument("reason") == "too small for two more steps");
  CHECK(all.events.back().argument("path").empty());
}

TEST_CASE("the operations of a fused entry begin directly after one another") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  const Record two{.kind = RecordKind::members, .detail = 2, .id = 1, .x = 2};
  for (const auto& record : {begin(0, 1), member(3), submit(1), submit(2), begin(1, 2), two})
    writer.take(0, record, 1000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B ALLREDUCE 1", "B NEGOTIATE_ALLREDUCE 2", "X 0 2",
                                 "B NEGOTIATE_ALLREDUCE 3", "X 0 3", "E 2", "E 3", "B ALLREDUCE 2",
                                 "B ALLREDUCE 3", "B QUEUE 2", "B QUEUE 3"});
}

TEST_CASE("a barrier has a negotiation and nothing else") {
  ChromeWriter writer({}, [](int, std::uint16_t, std::uint32_t id) {
    return std::optional(slot_of(id, "barrier", 3));
  });
  for (const auto& record : {submit(1), begin(0, 1, 3), member(1), end(0)})
    writer.take(0, record, 0);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_BARRIER 1", "X 0 1", "E 1"});
}

TEST_CASE("a change of the tuning is an instant with the values before and after it") {
  ChromeWriter writer({}, [](int, std::uint16_t, std::uint32_t) { return std::nullopt; });
  const RecordedTuning before{
      .fusion_threshold = 64 << 20, .wake_delay_ns = 50'000, .small_message = 64 << 10};
  auto after = before;
  after.after = true;
  after.wake_delay_ns = 100'000;
  after.small_message = 1 << 20;
  writer.take(0, encode(before, 0), 1000);
  writer.take(0, encode(after, 0), 1000);
  writer.take(0, encode(after, 0), 2000);  // Without the values before it.
  const auto events = writer.events();
  CHECK(in_short(events) == std::vector<std::string>{"i TUNING"});
  CHECK(
      events.find(R"("changes": "wake.delay 50 us to 100 us, small.message 64 KiB to 1024 KiB")") !=
      std::string::npos);
}

TEST_CASE("a generation of an elastic job is an instant with its ranks") {
  ChromeWriter writer({}, [](int, std::uint16_t, std::uint32_t) { return std::nullopt; });
  writer.take(0, encode(RecordedGeneration{.generation = 3, .ranks = 4, .survivors = 2}, 0), 1000);
  const auto events = writer.events();
  CHECK(in_short(events) == std::vector<std::string>{"i GENERATION"});
  CHECK(events.find(R"("generation": 3, "ranks": 4, "survivors": 2)") != std::string::npos);
}

TEST_CASE("a mismatch between ranks ends in an error") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  writer.take(0, submit(1), 1000);
  writer.take(0, {.kind = RecordKind::mismatch, .id = 1}, 2000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 0 1", "E 1", "B ERROR 1", "E 1"});
}

TEST_CASE("copies are shown before and after the data movement, inside the operation") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  std::int64_t ns = 0;
  for (const auto& record :
       {begin(0, 1), member(1), encode(Copies{.in = 2048, .out = 1024}, 0), end(0)})
    writer.take(0, record, ns += 5000, 2);
  std::vector<std::string> shown;
  for (const auto& event : read(fmt::format("[{}]", writer.events())).events) {
    if (event.phase != 'M')
      shown.push_back(fmt::format("{} {} {}", event.phase, event.name, event.ts_us));
  }
  CHECK(shown == std::vector<std::string>{"B ALLREDUCE 10", "B MEMCPY_IN_FUSION_BUFFER 10", "E  14",
                                          "B SHM_ALLREDUCE 14", "E  18",
                                          "B MEMCPY_OUT_FUSION_BUFFER 18", "E  20", "E  20"});
}

TEST_CASE("operations that began before the trace are left out completely") {
  ChromeWriter writer({},
                      [](int, std::uint16_t, std::uint32_t) { return std::optional<NameSlot>(); });
  for (const auto& record : {member(1), end(3), begin(4, 1), member(7), end(4)})
    writer.take(0, record, 0);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1"});
}

TEST_CASE("operations whose end was lost end with the next one") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  for (const auto& record : {begin(0, 1), member(1), begin(1, 1), member(2), end(1)})
    writer.take(0, record, 1000);
  CHECK(in_short(writer.events()) == std::vector<std::string>{"B ALLREDUCE 1", "B ALLREDUCE 2",
                                                              "B QUEUE 2", "B SHM_ALLREDUCE 1",
                                                              "E 1", "E 1", "E 2", "E 2"});
  writer.clear();
  for (const auto& record : {begin(2, 1), member(1), end(2)}) writer.take(0, record, 1000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1"});
}

TEST_CASE("entry numbers that start again end the open entries of the previous session") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  for (const auto& record : {begin(7, 1), member(1)}) writer.take(0, record, 1000);
  writer.clear();
  for (const auto& record : {begin(0, 1), member(2), end(0)}) writer.take(0, record, 1000);
  CHECK(in_short(writer.events()) == std::vector<std::string>{"B SHM_ALLREDUCE 1", "E 1", "E 1",
                                                              "B ALLREDUCE 2", "B SHM_ALLREDUCE 2",
                                                              "E 2", "E 2"});
}

TEST_CASE("a negotiation begins with the first rank and has a tick for each rank of the host") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  writer.take_from_peer(0, 2, submit(1), 1000);
  writer.take(0, submit(1), 2000);
  writer.take_from_peer(0, 1, submit(1), 30'000);
  for (const auto& record : {begin(0, 1), member(1), end(0)}) writer.take(0, record, 40'000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 2 1", "X 0 1", "X 1 1", "E 1",
                                 "B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1"});
  std::vector<double> ticks;
  for (const auto& event : read(fmt::format("[{}]", writer.events())).events) {
    if (event.phase == 'X') ticks.push_back(event.ts_us);
  }
  CHECK(ticks == std::vector<double>{1, 2, 30});
}

TEST_CASE("a rank of another host has a tick when its leader told of it") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  writer.take(0, submit(1), 1000);
  writer.take(0, {.kind = RecordKind::arrival, .id = 1, .x = 7}, 5000);
  writer.take(0, {.kind = RecordKind::arrival, .id = 1, .x = ~0ULL}, 5000);  // No such rank.
  for (const auto& record : {begin(0, 1), member(1), end(0)}) writer.take(0, record, 6000);
  CHECK(in_short(writer.events()) == std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 0 1",
                                                              "X 7 1", "E 1", "B ALLREDUCE 1",
                                                              "B SHM_ALLREDUCE 1", "E 1", "E 1"});
}

TEST_CASE("a submission for the next operation waits until this rank has ended the one before") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  writer.take(0, submit(1), 1000);
  writer.take_from_peer(0, 1, submit(1), 2000);
  SECTION("which this rank has not begun yet") {
    writer.take_from_peer(0, 1, submit(1), 3000);
    for (const auto& record : {begin(0, 1), member(1), end(0)}) writer.take(0, record, 4000);
  }
  SECTION("which this rank has begun") {
    for (const auto& record : {begin(0, 1), member(1)}) writer.take(0, record, 2500);
    writer.take_from_peer(0, 1, submit(1), 3000);
    writer.take(0, end(0), 4000);
  }
  writer.take(0, submit(1), 5000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 0 1", "X 1 1", "E 1",
                                 "B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1",
                                 "B NEGOTIATE_ALLREDUCE 1", "X 1 1", "X 0 1"});
}

TEST_CASE("after lost records a rank's ticks are of the operation that it submits to") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  for (int i = 0; i < 2; ++i) {  // The begin of the first operation was overwritten.
    writer.take_from_peer(0, 1, submit(1), 1000);
    writer.take(0, submit(1), 2000);
  }
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 1 1", "X 0 1", "E 1",
                                 "B NEGOTIATE_ALLREDUCE 1", "X 1 1", "X 0 1"});
}

TEST_CASE("a rank sees the submissions of the sets that it is a member of") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  const Record other{.kind = RecordKind::submit, .set = 2, .id = 1};
  writer.take_from_peer(0, 1, other, 1000);
  // The leader of rank 0's host records for all sets of the host.
  writer.take(0, {.kind = RecordKind::arrival, .set = 2, .id = 1, .x = 7}, 1000);
  CHECK(writer.events().empty());
  writer.take(0, {.kind = RecordKind::member, .set = 2}, 1000);
  writer.take_from_peer(0, 1, other, 2000);
  CHECK(in_short(writer.events()) == std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 1 1"});
}

TEST_CASE("a new file names the tensors again, in the same rows") {
  ChromeWriter writer({}, [](int, std::uint16_t, std::uint32_t id) {
    return std::optional(slot_of(id, id == 1 ? "a" : "b"));
  });
  for (const auto id : {1U, 2U}) writer.take(0, submit(id), 1000);
  writer.clear();
  writer.head();
  writer.take(0, submit(2), 2000);
  writer.take(0, submit(2), 3000);
  const auto events = read(fmt::format("[{}]", writer.events())).events;
  REQUIRE(!events.empty());
  CHECK(events.front().argument("name") == "b");
  CHECK(events.front().pid == "2");
  CHECK(in_short(writer.events()) == std::vector<std::string>{"X 0 2", "X 0 2"});
}

TEST_CASE("a tensor number that gets another name gets another row") {
  std::string name = "a";
  ChromeWriter writer({}, [&name](int, std::uint16_t, std::uint32_t id) {
    return std::optional(slot_of(id, name));
  });
  writer.take(0, submit(1), 1000);
  name = "b";
  writer.take(0, {.kind = RecordKind::declare, .id = 1}, 2000);
  writer.clear();
  writer.take(0, submit(1), 3000);
  CHECK(in_short(writer.events()) == std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 2", "X 0 2"});
}

TEST_CASE("a name that is declared with another shape keeps its row and gets the new shape") {
  auto slot = slot_of(1, "x");
  slot.since = 10;
  slot.bytes = 16;
  ChromeWriter writer({},
                      [&slot](int, std::uint16_t, std::uint32_t) { return std::optional(slot); });
  const auto ends = [&writer] {
    const auto events = read(fmt::format("[{}]", writer.events())).events;
    REQUIRE_FALSE(events.empty());
    return events.back().argument("shape");
  };
  const auto declares = [](std::uint64_t ticks, std::uint64_t bytes) {
    return Record{
        .ticks = ticks, .kind = RecordKind::declare, .id = 1, .x = bytes, .y = hash_of_name("x")};
  };
  const auto operation = [&writer](std::uint64_t entry) {
    for (const auto& record : {begin(entry, 1), member(1), end(entry)})
      writer.take(0, record, 1000);
  };
  // The name table is newer than the records, so it does not describe earlier declarations.
  writer.take(0, declares(1, 8), 1000);
  writer.take(0, {.ticks = 5, .kind = RecordKind::submit, .id = 1}, 1000);
  CHECK(read(fmt::format("[{}]", writer.events())).events.front().argument("name") == "x");
  operation(0);
  CHECK(ends().empty());
  writer.take(0, declares(10, 16), 1000);
  operation(1);
  CHECK(ends() == "[4]");
  slot.text[NameSlot::kMostName + 1] = '7';
  slot.bytes = 28;
  writer.take(0, declares(20, 28), 1000);
  writer.clear();
  operation(2);
  CHECK(ends() == "[7]");
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1"});
}

TEST_CASE("records from before a number was reused do not get the new name") {
  auto slot = slot_of(1, "new");
  slot.since = 10;
  ChromeWriter writer({},
                      [&slot](int, std::uint16_t, std::uint32_t) { return std::optional(slot); });
  const auto declares = [](std::uint64_t ticks, std::string_view name) {
    return Record{.ticks = ticks, .kind = RecordKind::declare, .id = 1, .y = hash_of_name(name)};
  };
  writer.take(0, declares(1, "old"), 1000);
  writer.take(0, {.ticks = 5, .kind = RecordKind::submit, .id = 1}, 1000);
  writer.take(0, declares(10, "new"), 1000);
  writer.take(0, {.ticks = 15, .kind = RecordKind::submit, .id = 1}, 1000);
  std::vector<std::string> names;
  for (const auto& event : read(fmt::format("[{}]", writer.events())).events) {
    if (event.name == "process_name") names.push_back(event.argument("name"));
  }
  CHECK(names == std::vector<std::string>{"tensor 1 (later new)", "new"});
}

TEST_CASE("the times of a trace's row never decrease") {
  ChromeWriter writer({},
                      [](int, std::uint16_t, std::uint32_t) { return std::optional<NameSlot>(); });
  writer.take(0, submit(1), 5'000'000);
  writer.take(0, submit(1), 3'000'000);
  for (const auto& event : read(fmt::format("[{}]", writer.events())).events)
    CHECK((event.phase == 'M' || event.ts_us == 5000));
}

TEST_CASE(
    "a trace file is a complete array after every write, and unchanged after a failed write") {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("horo-trace-{}", getpid())).string();
  const auto content = [&path] {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  auto file = TraceFile::create(path, R"({"ph": "M"})");
  REQUIRE(file);
  CHECK(content() == "[\n{\"ph\": \"M\"}\n]\n");
  REQUIRE(file->append(R"({"ph": "E", "ts": 1})"));
  const auto before = content();
  CHECK(read(before).events.size() == 2);
  CHECK(read(before).outcome->missing.empty());
  // The file size limit fails like a full disk, with another error number.
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = before.size() + 10, .rlim_max = limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const auto failed = file->append(std::string(R"({"ph": "E", "ts": 2, "name": "a longer one"})"));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, old);
  CHECK_FALSE(failed);
  CHECK(content() == before);
  REQUIRE(file->append(R"({"ph": "E", "ts": 3})"));
  CHECK(read(content()).events.size() == 3);
  const auto second = TraceFile::create(path, "{}");
  REQUIRE_FALSE(second);
  CHECK(second.error().message ==
        path + " is being written by another job; choose another file for this job");
  CHECK(read(content()).events.size() == 3);
  std::filesystem::remove(path);
}

TEST_CASE("a trace is not written to a FIFO, with or without a reader") {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("horo-fifo-{}", getpid())).string();
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const auto refusal =
      path + " is not a regular file; a trace can be written only to a regular file";
  CHECK(TraceFile::create(path, "{}").error().message == refusal);
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(TraceFile::create(path, "{}").error().message == refusal);
  std::filesystem::remove(path);
}

TEST_CASE("a trace can be read wherever it is cut") {
  const std::string whole =
      R"([{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "x"}},)"
      "\n"
      R"({"ph": "B", "name": "A", "ts": 1.5, "pid": "one"}, {"ph": "E", "ts": 2, "pid": "one"}])";
  std::size_t before = 0;
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    INFO("cut at " << cut);
    const auto got = read(whole.substr(0, cut), 3);
    REQUIRE(got.outcome);
    REQUIRE_FALSE(got.outcome->missing.empty());
    REQUIRE(got.events.size() >= before);
    before = got.events.size();
  }
  CHECK(before == 3);
  const auto got = read(whole, 1);
  REQUIRE(got.outcome);
  CHECK(got.outcome->missing.empty());
  REQUIRE(got.events.size() == 3);
  CHECK(got.events[1].pid == "one");
  CHECK(got.events[1].ts_us == 1.5);
}

TEST_CASE("events are also found in the array of an object, but not in other arrays") {
  const auto got = read(
      R"({"a": [{"ph": "B"}], "distributedInfo": {"rank": 5}, "traceEvents": [{"ph": "X", "args": )"
      R"({"deep": [{"ph": "E"}], "n": 3}}], "b": {"traceEvents": [{"ph": "B"}]}})");
  REQUIRE(got.outcome);
  CHECK(got.outcome->rank == 5);
  REQUIRE(got.events.size() == 1);
  CHECK(got.events[0].argument("n") == "3");
}

TEST_CASE("a byte-order mark is skipped, in pieces of any size") {
  for (const std::size_t piece : {1, 2, 1000}) {
    const auto got = read("\xef\xbb\xbf[{\"ph\": \"B\", \"ts\": 5}]\n", piece);
    REQUIRE(got.outcome);
    CHECK(got.events.size() == 1);
    CHECK(got.outcome->missing.empty());
    const auto half = read("\xef\xbb[{\"ph\": \"B\", \"ts\": 5}]", piece);
    REQUIRE_FALSE(half.outcome);
    CHECK(half.outcome.error().message ==
          "not a trace in JSON: byte 2: an incomplete byte-order mark");
  }
}

TEST_CASE("bytes behind the end of a trace give a warning") {
  const std::string trace = R"([{"ph": "B", "ts": 5}])";
  for (const auto& more : {trace, std::string("x"), std::string(3, '\0')}) {
    const auto got = read(trace + "\n" + more);
    REQUIRE(got.outcome);
    CHECK(got.events.size() == 1);
    CHECK(got.outcome->missing == "it ends at byte 23; what follows there is not read");
  }
}

TEST_CASE("events carry the rank of their profile") {
  const auto got = read(R"({"distributedInfo": {"rank": 3}, "traceEvents": [{"ph": "B", "ts": 5},
    {"ph": "B", "ts": 5, "args": {"a": [1]}}]})");
  REQUIRE(got.events.size() == 2);
  CHECK(got.events[0].rank == 3);
  CHECK(got.events[1].rank == 3);
}

TEST_CASE("deeply nested JSON gives an error, not a stack overflow") {
  const auto got = read(std::string(100'000, '['));
  CHECK((!got.outcome || !got.outcome->missing.empty()));
  CHECK_FALSE(read("[1, 2, x]").outcome);
}

TEST_CASE("an event is read the same in one piece and in many, even a damaged one") {
  const std::string longest(JsonReader::kMostText, 'x');
  std::string many;
  for (int i = 0; i < 40; ++i) many += fmt::format(R"("a{}": "{}", )", i, i);
  for (const std::string& event :
       {std::string(R"({"ph":"B","name":"n","cat":"c","pid":1,"tid":"t","ts":-1.5,"dur":20})"),
        std::string(R"({ "ph" : "E" , "ts" : 1e3 , "args" : { "a" : 1 , "b" : "x" } , })"),
        std::string(R"({"ph": "X", "args": {"deep": [1, {"x": 2}], "n": true}, "ts": null})"),
        std::string(R"({"ph": "X", "args": {}, "id": {"a": 1}, "ts": 123456789012345678})"),
        std::string(R"({"ph": "B", "name": "\u00e9\"", "args": "none", "ph": "E"})"),
        std::string("{\"ph\": \"B\", \"name\": \"a\tb\"}"), std::string(R"({"ph": "B" "ts": 1})"),
        std::string(R"({"ph": "B", "ts": 1x})"), std::string(R"({"ph": "B", "ts": -})"),
        std::string(R"({"ph": "B", "ts": .5})"), std::string("{\"ph\": \"B\",\0\"ts\": 1}", 20),
        std::string("{}"), "{\"ph\": \"B\", \"name\": \"" + longest + "y\"}",
        "{\"ph\": \"B\", \"args\": {" + many + "\"last\": 1}}"}) {
    const auto text = R"([{"ph": "M"}, )" + event + R"(, {"ph": "i"}])";
    const auto whole = read(text);
    REQUIRE(whole.outcome);
    for (const std::size_t piece : {1U, 2U, 7U}) {
      INFO(event << " in pieces of " << piece);
      const auto pieces = read(text, piece);
      REQUIRE(pieces.outcome);
      CHECK(pieces.outcome->missing == whole.outcome->missing);
      CHECK(pieces.events == whole.events);
    }
  }
}
