// SPDX-License-Identifier: Apache-2.0
// The times at which devices worked, as records and in a Chrome trace.
#include <filesystem>
#include <optional>
#include <string>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/chrome/chrome_writer.hpp"
#include "timeline/chrome/trace.hpp"
#include "timeline/record/recorder.hpp"

using namespace horo;
using namespace horo::timeline;

namespace {

constexpr std::int64_t kMs = 1'000'000;

std::optional<NameSlot> no_slot(int /*rank*/, std::uint16_t /*set*/, std::uint32_t /*id*/) {
  return std::nullopt;
}

std::optional<NameSlot> slot(int /*rank*/, std::uint16_t /*set*/, std::uint32_t id) {
  NameSlot made;
  made.sequence = 2;
  made.id = id;
  const auto name = fmt::format("grad.{}", id);
  made.name_bytes = static_cast<std::uint8_t>(name.copy(made.text.data(), NameSlot::kMostName));
  return made;
}

/// A rank's entry of two tensors, whose device packs for 2 ms and moves for 30 ms, seen 1 ms later.
void take_entry(ChromeWriter& writer, int rank) {
  const auto work = [](DevicePhase phase, std::uint64_t before_ms, std::uint64_t ms) {
    return encode(RecordedDevicePhase{.entry = 4,
                                      .phase = phase,
                                      .device = 0,
                                      .stream = 1,
                                      .before_ns = before_ms * kMs,
                                      .lasted_ns = ms * kMs,
                                      .error_ns = 6400},
                  0);
  };
  writer.take(rank, {.kind = RecordKind::submit, .id = 7}, 10 * kMs);
  writer.take(rank, {.kind = RecordKind::submit, .id = 8}, 10 * kMs);
  writer.take(rank, encode({.mover = Mover::shm, .tensors = 2, .entry = 4}, 0), 11 * kMs);
  writer.take(rank, encode_members({7, 8}, 2, 0, 0), 11 * kMs);
  writer.take(rank, work(DevicePhase::pack, 33, 2), 50 * kMs);
  writer.take(rank, work(DevicePhase::nccl, 31, 30), 50 * kMs);
  writer.take(rank, {.kind = RecordKind::end, .x = 4}, 50 * kMs);
}

}  // namespace

TEST_CASE("the record of a phase on a device keeps its fields") {
  const RecordedDevicePhase phase{.set = 3,
                                  .entry = 1ULL << 40U,
                                  .phase = DevicePhase::to_device,
                                  .device = 7,
                                  .stream = 12,
                                  .before_ns = 20'000'000'000,
                                  .lasted_ns = 16 * 999,
                                  .error_ns = 64 * 9};
  CHECK(decode_device_phase(encode(phase, 5)) == phase);
  // A record keeps the longest time that it can hold in place of a longer one.
  auto longer = phase;
  longer.lasted_ns = ~0ULL;
  longer.error_ns = ~0ULL;
  const auto kept = decode_device_phase(encode(longer, 5));
  CHECK(kept.lasted_ns > 60'000'000'000);
  CHECK(kept.error_ns == 65535 * 64);
  CHECK(kept.before_ns == phase.before_ns);
  CHECK(kept.device == 7);
}

TEST_CASE("a device has a track of its own, with the times at which it worked") {
  ChromeWriter writer({}, slot);
  take_entry(writer, 0);
  const auto text = std::string(writer.events());
  INFO(text);
  CHECK(text.find(R"("args": {"name": "GPU 0: communication stream"})") != std::string::npos);
  CHECK(
      text.find(
          R"({"ph": "X", "cat": "device", "name": "PACK", "ts": 17000.000, "dur": 2000.000, "pid": 3, "tid": 1, "args": {"error_us": 6.400, "operation": "ALLREDUCE", "tensor": "grad.7", "tensors": 2}})") !=
      std::string::npos);
  CHECK(text.find(R"("name": "NCCL_ALLREDUCE", "ts": 19000.000, "dur": 30000.000, "pid": 3)") !=
        std::string::npos);
  // A new file names the track again.
  writer.clear();
  static_cast<void>(writer.head());
  take_entry(writer, 0);
  CHECK(writer.events().find("communication stream") != std::string_view::npos);
}

TEST_CASE("the rows of tensors are the same with and without times of devices") {
  const auto events_of = [](bool device) {
    ChromeWriter writer({}, no_slot);
    writer.take(0, {.kind = RecordKind::submit, .id = 7}, 1000);
    writer.take(0, encode({.mover = Mover::shm, .tensors = 1, .entry = 4}, 0), 2000);
    writer.take(0, encode_members({7}, 1, 0, 0), 2000);
    writer.clear();
    if (device) writer.take(0, encode(RecordedDevicePhase{.entry = 4, .lasted_ns = 160}, 0), 9000);
    writer.clear();
    writer.take(0, {.kind = RecordKind::end, .x = 4}, 9000);
    return std::string(writer.events());
  };
  CHECK(events_of(true) == events_of(false));
}

TEST_CASE("the tracks of several ranks name their rank") {
  ChromeWriter writer({.show_ranks = true}, slot);
  take_entry(writer, 0);
  take_entry(writer, 5);
  const auto text = std::string(writer.events());
  CHECK(text.find(R"("rank 0, GPU 0: communication stream")") != std::string::npos);
  CHECK(text.find(R"("rank 5, GPU 0: communication stream")") != std::string::npos);
  CHECK(text.find(R"("rank": 5)") != std::string::npos);
}

TEST_CASE("the trace says why times of a device are missing") {
  ChromeWriter writer({}, no_slot);
  writer.take(0,
              {.kind = RecordKind::no_device_times,
               .detail = static_cast<std::uint8_t>(NoDeviceTimes::not_recorded),
               .id = 2},
              4000);
  const auto text = std::string(writer.events());
  CHECK(text.find("GPU 2: communication stream") != std::string::npos);
  CHECK(
      text.find(
          R"("name": "NO_DEVICE_TIMES", "s": "p", "ts": 4, "pid": 1, "tid": 0, "args": {"reason": "the device could not record an event"}})") !=
      std::string::npos);
  CHECK(timeline::text(static_cast<NoDeviceTimes>(99)) == "recorded by another version");
}

TEST_CASE("times of devices are wanted while a trace shows the rank") {
  CHECK_FALSE(Recorder::wants_device_times());
  // As all cases of this program, which has one recorder.
  REQUIRE(Recorder::open(
      {.ring_memory = Bytes{1}, .name_slots = 16, .identity = {.rank = 2, .size = 4}}));
  CHECK_FALSE(Recorder::wants_device_times());
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("horo-device-times-{}", getpid());
  {
    const auto trace = Trace::start({.path = path});
    REQUIRE(trace);
    CHECK(Recorder::wants_device_times());
  }
  CHECK_FALSE(Recorder::wants_device_times());
  std::filesystem::remove(path);
  Recorder::close();
}
