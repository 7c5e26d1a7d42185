// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device_clock.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/bucket/bucket_timer.hpp"

using horo::Duration;
using horo::Errc;
using horo::fail;
using horo::ManualClock;
using horo::Result;
using horo::Status;
using horo::TimePoint;
using horo::runtime::Device;
using horo::runtime::DeviceClock;
using horo::runtime::DeviceTimes;
using horo::runtime::EventHandle;
using horo::runtime::Packer;
using horo::runtime::PhaseTimer;
using horo::runtime::StreamHandle;
using horo::timeline::DevicePhase;
using horo::timeline::NoDeviceTimes;
using namespace std::chrono_literals;

namespace {

/// Its events run when the test says so, and have the times of a clock that starts at another
/// moment than the host's and drifts away from it.
class ClockedDevice final : public Device {
 public:
  explicit ClockedDevice(const ManualClock& host) : host_(host) {}

  double drift = 0;
  double origin_ns = 1e9;
  bool references_run = true;  ///< At once, as on a device that has room.
  std::string fails{};         ///< The function that fails.
  int made = 0;                ///< Timed events.
  int calls = 0;               ///< All calls that concern events and streams.

  int index() const override { return 0; }

  Status enter() override { return {}; }

  void leave() override {}

  Packer* packer() override { return nullptr; }

  Result<void*> allocate(std::uint64_t /*bytes*/) override { return nullptr; }

  Result<void*> allocate_host(std::uint64_t /*bytes*/) override { return nullptr; }

  void free(void* /*memory*/) override {}

  void free_host(void* /*memory*/) override {}

  Result<StreamHandle> make_stream() override { return fail(Errc::io, "no stream"); }

  Result<StreamHandle> make_urgent_stream() override {
    HORO_TRY_STATUS(call("make_urgent_stream"));
    return StreamHandle{&reference_stream_};
  }

  void destroy_stream(StreamHandle /*stream*/) override {}

  Result<EventHandle> make_event() override { return fail(Errc::io, "no event"); }

  Result<EventHandle> make_timed_event() override {
    if (fails == "unsupported") return fail(Errc::unsupported, "no times");
    HORO_TRY_STATUS(call("make_timed_event"));
    ++made;
    return EventHandle{&events_.emplace_back(std::make_unique<Event>())->ran_ns};
  }

  void destroy_event(EventHandle event) override { destroyed.insert(event); }

  Result<bool> is_capturing(StreamHandle /*stream*/) override { return false; }

  Status record(EventHandle event, StreamHandle stream) override {
    HORO_TRY_STATUS(call("record"));
    auto& recorded = find(event);
    recorded.ran = false;
    if (stream == &reference_stream_) {
      if (references_run) run(event);
    } else {
      waiting_.push_back(event);
    }
    return {};
  }

  Status wait(StreamHandle /*stream*/, EventHandle /*event*/) override { return {}; }

  Result<bool> done(EventHandle event) override {
    HORO_TRY_STATUS(call("done"));
    return find(event).ran;
  }

  Result<double> elapsed(EventHandle from, EventHandle to) override {
    HORO_TRY_STATUS(call("elapsed"));
    if (!find(from).ran || !find(to).ran) return fail(Errc::io, "not ready");
    return find(to).ran_ns - find(from).ran_ns;
  }

  Status copy(void* /*to*/, const void* /*from*/, std::uint64_t /*bytes*/,
              StreamHandle /*stream*/) override {
    return {};
  }

  /// The oldest record that waits runs now.
  void run_next() {
    run(waiting_.front());
    waiting_.erase(waiting_.begin());
  }

  std::set<EventHandle> destroyed;

 private:
  struct Event {
    double ran_ns = 0;
    bool ran = false;
  };

  Status call(const std::string& name) {
    ++calls;
    return fails == name ? Status(fail(Errc::io, "{} fails", name)) : Status();
  }

  Event& find(EventHandle handle) {
    for (auto& event : events_) {
      if (&event->ran_ns == handle) return *event;
    }
    throw std::out_of_range("no such event");
  }

  void run(EventHandle event) {
    const auto host_ns = static_cast<double>(host_.now().time_since_epoch().count());
    find(event).ran_ns = host_ns * (1 + drift) - origin_ns;
    find(event).ran = true;
  }

  const ManualClock& host_;
  int reference_stream_ = 0;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<EventHandle> waiting_;
};

/// A host, its device, and a stream.
struct World {
  ManualClock host;
  ClockedDevice device{host};
  int stream_object = 0;
  StreamHandle stream = &stream_object;

  /// One phase that begins `before` after the call and lasts so long; the host sees its end `late`
  /// after it.
  horo::runtime::DeviceTime phase(DeviceClock& clock, Duration before, Duration lasts,
                                  Duration late) {
    PhaseTimer timer(&clock);
    DeviceTimes times;
    called = host.now();
    timer.enter(DevicePhase::nccl, stream);
    timer.leave();
    clock.look();
    host.advance(before);
    begun = host.now();
    device.run_next();
    host.advance(lasts);
    device.run_next();
    host.advance(late);
    seen = host.now();
    timer.read(times);
    REQUIRE_FALSE(times.missing);
    REQUIRE(times.phases.size() == 1);
    return times.phases.front();
  }

  TimePoint called;
  TimePoint begun;
  TimePoint seen;
};

}  // namespace

TEST_CASE("a phase has the host's time at which the device began it") {
  World world;
  DeviceClock clock(world.device, world.host);
  const auto time = world.phase(clock, 100ms, 20ms, 5ms);
  CHECK(time.phase == DevicePhase::nccl);
  CHECK(time.to - time.from == 20ms);
  CHECK(std::chrono::abs(time.from - world.begun) <= time.error);
  CHECK(time.error < 20us);
}

TEST_CASE("a drift of the device's clock does not add up") {
  World world;
  world.device.drift = GENERATE(-80e-6, 0.0, 50e-6);
  DeviceClock clock(world.device, world.host);
  for (int step = 0; step < 200; ++step) {
    world.host.advance(100ms);
    const auto time = world.phase(clock, 10us, 300us, 10us);
    CHECK(std::chrono::abs(time.from - world.begun) <= time.error);
    CHECK(time.error <= 15us);
  }
}

TEST_CASE("a phase lies between its call and its end whatever is known of the clocks") {
  World world;
  SECTION("there is no stream for references") {
    world.device.fails = "make_urgent_stream";
  }
  SECTION("references do not run") {
    world.device.references_run = false;
  }
  DeviceClock clock(world.device, world.host);
  for (int step = 0; step < 3; ++step) {
    const auto time = world.phase(clock, 2ms, 3ms, 1ms);
    CHECK(time.from >= world.called);
    CHECK(time.to <= world.seen);
    CHECK(std::chrono::abs(time.from - world.begun) <= time.error);
  }
}

TEST_CASE("a device whose clock jumps is related to the host anew") {
  World world;
  DeviceClock clock(world.device, world.host);
  world.phase(clock, 10us, 100us, 10us);
  world.device.origin_ns -= 1e9;
  const auto time = world.phase(clock, 10us, 100us, 10us);
  CHECK(time.from >= world.called);
  CHECK(time.to <= world.seen);
  const auto next = world.phase(clock, 10us, 100us, 10us);
  CHECK(std::chrono::abs(next.from - world.begun) <= next.error);
}

TEST_CASE("phases that follow each other share an event, and events are used again") {
  World world;
  {
    DeviceClock clock(world.device, world.host);
    for (int bucket = 0; bucket < 3; ++bucket) {
      PhaseTimer timer(&clock);
      DeviceTimes times;
      timer.enter(DevicePhase::pack, world.stream);
      timer.enter(DevicePhase::nccl, world.stream);
      timer.enter(DevicePhase::unpack, world.stream);
      timer.leave();
      for (int k = 0; k < 4; ++k) {
        world.host.advance(1ms);
        world.device.run_next();
      }
      timer.read(times);
      REQUIRE(times.phases.size() == 3);
      CHECK(times.phases[0].to == times.phases[1].from);
      CHECK(times.phases[2].to - times.phases[0].from == 3ms);
    }
    CHECK(world.device.made == 5);  // One of them is the reference.
  }
  CHECK(world.device.destroyed.size() == 5);
}

TEST_CASE("a bucket whose times nobody asks for costs no call of the device") {
  World world;
  auto made = std::make_unique<ClockedDevice>(world.host);
  const auto& device = *made;
  horo::runtime::OpenDevice gpu(std::move(made));
  horo::runtime::DeviceOutcome outcome;
  DeviceTimes times;
  outcome.times = GENERATE(true, false) ? &times : nullptr;
  auto timer = horo::runtime::timer_of(gpu, &outcome);
  timer.enter(DevicePhase::pack, world.stream);
  timer.leave();
  CHECK((device.calls == 0) == (outcome.times == nullptr));
}

TEST_CASE("a failed call of the device leaves the times out, with the reason") {
  const std::map<std::string, NoDeviceTimes> steps = {{"unsupported", NoDeviceTimes::unsupported},
                                                      {"make_timed_event", NoDeviceTimes::not_made},
                                                      {"record", NoDeviceTimes::not_recorded},
                                                      {"elapsed", NoDeviceTimes::not_read}};
  for (const auto& [fails, reason] : steps) {
    World world;
    DeviceClock clock(world.device, world.host);
    world.device.fails = fails;
    PhaseTimer timer(&clock);
    DeviceTimes times;
    timer.enter(DevicePhase::pack, world.stream);
    timer.enter(DevicePhase::nccl, world.stream);
    timer.leave();
    if (fails == "elapsed") {
      for (int k = 0; k < 3; ++k) world.device.run_next();
    }
    timer.read(times);
    CHECK(times.phases.empty());
    REQUIRE(times.missing);
    CHECK(*times.missing == reason);
    // The next bucket is measured again.
    world.device.fails.clear();
    CHECK_FALSE(world.phase(clock, 1ms, 1ms, 1ms).from < world.called);
  }
}
