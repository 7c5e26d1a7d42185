// SPDX-License-Identifier: Apache-2.0
// The software device itself: it moves data late and in order, it fails when it is asked to, and
// it finds what a real device would do wrong silently.
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/software_device/loaded_device.hpp"

using horo::Errc;
using horo::runtime::Device;
using horo::runtime::EventHandle;
using horo::runtime::StreamHandle;
using horo::tests::fetch;
using horo::tests::put;
using horo::tests::SoftwareDevice;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kSize = 1000;

void await(Device& device, EventHandle event) {
  for (auto done = device.done(event); !*done; done = device.done(event)) std::this_thread::yield();
}

bool found(const SoftwareDevice& software, const std::string& part) {
  const auto text = software.findings();
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

/// A program's memory, two streams and an event.
struct Program {
  explicit Program(const SoftwareDevice& software) : device(software.open()) {
    memory = *device->allocate(kSize);
    pinned = *device->allocate_host(kSize);
    one = *device->make_stream();
    two = *device->make_stream();
    event = *device->make_event();
  }

  std::unique_ptr<Device> device;
  void* memory = nullptr;
  void* pinned = nullptr;
  StreamHandle one = nullptr;
  StreamHandle two = nullptr;
  EventHandle event = nullptr;
};

}  // namespace

TEST_CASE("a stream for communication has the device's greatest priority") {
  const SoftwareDevice software;
  const Program program(software);
  void* const library = dlopen(SoftwareDevice::path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto priority_of =
      reinterpret_cast<int (*)(void*, int*)>(dlsym(library, "cuStreamGetPriority"));
  REQUIRE(priority_of != nullptr);
  int least = 0;
  int greatest = 0;
  int priority = 0;
  REQUIRE(program.device->enter());
  CHECK(software.driver().priority_range(&least, &greatest) == 0);
  CHECK(priority_of(*program.device->make_urgent_stream(), &priority) == 0);
  CHECK(priority == greatest);
  CHECK(priority_of(program.one, &priority) == 0);
  CHECK(priority == least);
  CHECK(greatest < least);
  program.device->leave();
}

TEST_CASE("the software device moves bytes late, in the order of streams and events") {
  const SoftwareDevice software;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    software.plan("delay=200 seed=" + std::to_string(seed));
    Program program(software);
    auto& device = *program.device;
    Bytes last;
    for (std::uint8_t round = 0; round < 5; ++round) {
      last.assign(kSize, round);
      put(device, program.memory, last, program.one);
      REQUIRE(device.record(program.event, program.one));
      REQUIRE(device.wait(program.two, program.event));
      CHECK(fetch(device, program.memory, kSize, program.two) == last);
    }
    CHECK(software.findings().empty());
    device.free(program.memory);
    device.free_host(program.pinned);
    CHECK(software.findings().empty());
  }
}

TEST_CASE("work that has not run leaves memory as it was") {
  const SoftwareDevice software("hang=2");
  Program program(software);
  auto& device = *program.device;
  std::memset(program.pinned, 7, kSize);
  put(device, program.memory, Bytes(kSize, 1), program.one);
  REQUIRE(device.copy(program.pinned, program.memory, kSize, program.one));
  REQUIRE(device.record(program.event, program.one));
  CHECK_FALSE(*device.done(program.event));
  CHECK(static_cast<const std::uint8_t*>(program.pinned)[0] == 7);
  while (software.pending() != 2) std::this_thread::yield();
  CHECK_FALSE(*device.done(program.event));
  software.plan("");  // The operation that hung goes on.
  await(device, program.event);
  CHECK(static_cast<const std::uint8_t*>(program.pinned)[kSize - 1] == 1);
}

TEST_CASE("host code that reads memory of the software device crashes") {
  const SoftwareDevice software;
  const Program program(software);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*static_cast<volatile const std::uint8_t*>(program.memory));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

TEST_CASE("a use that no event orders is found, whenever it runs") {
  const SoftwareDevice software;
  Program program(software);
  auto& device = *program.device;
  put(device, program.memory, Bytes(kSize, 1), program.one);
  SECTION("a read behind a write") {
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.two));
    CHECK(found(software, "not ordered: operation 1 of stream"));
  }
  SECTION("a write behind a read") {
    REQUIRE(device.record(program.event, program.one));
    REQUIRE(device.wait(program.two, program.event));
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.two));
    put(device, program.memory, Bytes(kSize, 2), program.one);
    CHECK(found(software, "writes memory"));
  }
  SECTION("an event that was recorded too early") {
    REQUIRE(device.record(program.event, program.two));
    REQUIRE(device.wait(program.two, program.event));
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.two));
    CHECK(found(software, "not ordered"));
  }
  SECTION("other bytes of the same memory are no conflict") {
    put(device, static_cast<std::byte*>(program.memory) + 500, Bytes(500, 2), program.two);
    CHECK(found(software, "not ordered"));
    software.plan("");
    fetch(device, program.memory, 1, program.one);
    fetch(device, program.memory, 1, program.two);
    put(device, program.memory, Bytes(400, 1), program.one);
    put(device, static_cast<std::byte*>(program.memory) + 400, Bytes(600, 2), program.two);
    CHECK(software.findings().empty());
  }
  SECTION("the host that has seen the event orders what it starts then") {
    REQUIRE(device.record(program.event, program.one));
    await(device, program.event);
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.two));
    CHECK(software.findings().empty());
  }
}

TEST_CASE("memory that is freed in use, used when it is freed, or too small is found") {
  const SoftwareDevice software;
  Program program(software);
  auto& device = *program.device;
  SECTION("device memory freed in use") {
    put(device, program.memory, Bytes(kSize, 1), program.one);
    device.free(program.memory);
    CHECK(found(software, "freed in use"));
  }
  SECTION("pinned memory freed in use") {
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.one));
    device.free_host(program.pinned);
    CHECK(found(software, "freed in use"));
  }
  SECTION("used when it is freed") {
    device.free(program.memory);
    CHECK_FALSE(device.copy(program.pinned, program.memory, kSize, program.one));
    CHECK(found(software, "that are freed"));
  }
  SECTION("freed twice") {
    device.free(program.memory);
    device.free(program.memory);
    CHECK(found(software, "freed already"));
  }
  SECTION("too small") {
    CHECK_FALSE(device.copy(program.pinned, program.memory, kSize + 1, program.one));
    CHECK(found(software, "that are not all allocated"));
  }
}

TEST_CASE("the software device fails on demand") {
  const SoftwareDevice software;
  Program program(software);
  auto& device = *program.device;
  SECTION("an allocation") {
    software.plan("fail=cuMemAlloc@2:2");
    CHECK(device.allocate(8));
    const auto failed = device.allocate(8);
    CHECK(failed.error().code == Errc::out_of_memory);
    CHECK(failed.error().message == "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)");
    CHECK(device.allocate(8));
  }
  SECTION("a launch") {
    software.plan("fail=cuMemcpyAsync@1:719");
    CHECK_FALSE(device.copy(program.pinned, program.memory, kSize, program.one));
    CHECK(device.copy(program.pinned, program.memory, kSize, program.one));
  }
  SECTION("an asynchronous error, from which everything fails") {
    software.plan("async=1:700");
    REQUIRE(device.copy(program.pinned, program.memory, kSize, program.one));
    auto done = device.record(program.event, program.one) ? device.done(program.event)
                                                          : horo::Result<bool>(true);
    while (done && !*done) done = device.done(program.event);
    CHECK_FALSE(device.done(program.event));
    CHECK_FALSE(device.allocate(8));
  }
  software.plan("");
}

TEST_CASE("timed events tell how long the device worked between them") {
  const SoftwareDevice software("slow=copy:2000 drift=50");
  const Program program(software);
  auto& device = *program.device;
  const auto from = *device.make_timed_event();
  const auto to = *device.make_timed_event();
  CHECK_FALSE(device.elapsed(from, to));  // Neither has been recorded.
  REQUIRE(device.record(from, program.one));
  REQUIRE(device.copy(program.pinned, program.memory, kSize, program.one));
  REQUIRE(device.record(to, program.one));
  await(device, to);
  const auto passed = device.elapsed(from, to);
  REQUIRE(passed);
  CHECK(*passed >= 2e6);
  CHECK(*device.elapsed(to, from) == -*passed);
  REQUIRE(device.record(program.event, program.one));
  await(device, program.event);
  CHECK_FALSE(device.elapsed(from, program.event));  // Such an event has no time.
}

TEST_CASE("a second device has its own streams, and memory says whose it is") {
  const SoftwareDevice software("devices=2");
  const auto first = software.open(0);
  const auto second = software.open(1);
  CHECK(software.driver().status(0, "x"));
  void* const memory = *second->allocate(kSize);
  int owner = -1;
  REQUIRE(software.driver().pointer_attribute(&owner, horo::runtime::cuda::kDeviceOrdinal,
                                              reinterpret_cast<std::uint64_t>(memory)) == 0);
  CHECK(owner == 1);
  const auto event = *first->make_event();
  CHECK_FALSE(first->record(event, *second->make_stream()));
  second->free(memory);
}
