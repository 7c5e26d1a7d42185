// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "timeline/chrome_reader.hpp"
#include "timeline/chrome_writer.hpp"
#include "timeline/trace_file.hpp"

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

struct Read {
  std::vector<ChromeEvent> events;
  Result<ChromeOutcome> outcome;
};

Read read(const std::string& text, std::size_t piece = 1 << 16) {
  std::vector<ChromeEvent> events;
  auto outcome = read_chrome(source_of(text, piece),
                             [&events](const ChromeEvent& event) { events.push_back(event); });
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
std::vector<std::string> in_short(const std::string& events) {
  std::vector<std::string> lines;
  for (const auto& event : read("[" + events + "]").events) {
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

TEST_CASE("a tensor negotiates, waits behind another entry, and moves") {
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
  const auto all = read("[" + events + "]");
  CHECK(all.events.front().argument("name") == "a\"b");
  CHECK(all.events.back().argument("dtype") == "float32");
  CHECK(all.events.back().argument("shape") == "[4]");
  CHECK(all.events.back().ts_us == 8);
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

TEST_CASE("what the ranks submitted differently ends in an error") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  writer.take(0, submit(1), 1000);
  writer.take(0, {.kind = RecordKind::mismatch, .id = 1}, 2000);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B NEGOTIATE_ALLREDUCE 1", "X 0 1", "E 1", "B ERROR 1", "E 1"});
}

TEST_CASE("copies stand before and behind what moves, and within the operation") {
  ChromeWriter writer(
      {}, [](int, std::uint16_t, std::uint32_t id) { return std::optional(slot_of(id, "a")); });
  std::int64_t ns = 0;
  for (const auto& record :
       {begin(0, 1), member(1), encode(Copies{.in = 2048, .out = 1024}, 0), end(0)})
    writer.take(0, record, ns += 5000, 2);
  std::vector<std::string> shown;
  for (const auto& event : read("[" + writer.events() + "]").events) {
    if (event.phase != 'M')
      shown.push_back(fmt::format("{} {} {}", event.phase, event.name, event.ts_us));
  }
  CHECK(shown == std::vector<std::string>{"B ALLREDUCE 10", "B MEMCPY_IN_FUSION_BUFFER 10", "E  14",
                                          "B SHM_ALLREDUCE 14", "E  18",
                                          "B MEMCPY_OUT_FUSION_BUFFER 18", "E  20", "E  20"});
}

TEST_CASE("what began before the trace did is left out, in pairs") {
  ChromeWriter writer({},
                      [](int, std::uint16_t, std::uint32_t) { return std::optional<NameSlot>(); });
  for (const auto& record : {member(1), end(3), begin(4, 1), member(7), end(4)})
    writer.take(0, record, 0);
  CHECK(in_short(writer.events()) ==
        std::vector<std::string>{"B ALLREDUCE 1", "B SHM_ALLREDUCE 1", "E 1", "E 1"});
}

TEST_CASE("time in a row never runs backwards") {
  ChromeWriter writer({},
                      [](int, std::uint16_t, std::uint32_t) { return std::optional<NameSlot>(); });
  writer.take(0, submit(1), 5'000'000);
  writer.take(0, submit(1), 3'000'000);
  for (const auto& event : read("[" + writer.events() + "]").events)
    CHECK((event.phase == 'M' || event.ts_us == 5000));
}

TEST_CASE("a trace file is an array after every write, and as before after one that failed") {
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
  // No room for more: as a full disk answers, but for the number.
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
  std::filesystem::remove(path);
}

TEST_CASE("a trace can be read wherever it was cut") {
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

TEST_CASE("events lie in the array of an object too, other arrays are none") {
  const auto got = read(
      R"({"a": [{"ph": "B"}], "distributedInfo": {"rank": 5}, "traceEvents": [{"ph": "X", "args": )"
      R"({"deep": [{"ph": "E"}], "n": 3}}], "b": {"traceEvents": [{"ph": "B"}]}})");
  REQUIRE(got.outcome);
  CHECK(got.outcome->rank == 5);
  REQUIRE(got.events.size() == 1);
  CHECK(got.events[0].argument("n") == "3");
}

TEST_CASE("JSON of any depth ends in an error, not in the stack") {
  const auto got = read(std::string(100'000, '['));
  CHECK((!got.outcome || !got.outcome->missing.empty()));
  CHECK_FALSE(read("[1, 2, x]").outcome);
}
