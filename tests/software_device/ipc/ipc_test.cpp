// SPDX-License-Identifier: Apache-2.0
// The backend ipc between processes over the software device, also several on one device.
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/ipc/ipc_backend.hpp"
#include "runtime/backends/ipc/ipc_path.hpp"
#include "runtime/kernels/kernels.hpp"
#include "tests/software_device/kernels/kernel_memory.hpp"

using namespace horo;
using namespace horo::runtime;
using Content = horo::tests::Bytes;
using horo::tests::elements_of;
using horo::tests::fetch;
using horo::tests::put;
using horo::tests::SoftwareDevice;

namespace {

constexpr int kMost = 4;

/// Memory that the processes of a test share.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<pid_t> process{0};  ///< The rank that a test kills.
  char offers[kMost][kMostOffer];
  std::size_t offered[kMost];

  void wait_for(int count) {
    ++arrived;
    while (arrived < count) std::this_thread::yield();
  }
};

/// One rank in a process of its own.
struct RankProcess {
  int position = 0;
  int ranks = 0;
  Meeting* meeting = nullptr;
  const SoftwareDevice* software = nullptr;
  OpenDevice* gpu = nullptr;
  Device* device = nullptr;  ///< The same.
  Backend* backend = nullptr;
  StreamHandle stream = nullptr;
};

/// Checks in a rank's process; its name is written when it does not hold.
void need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "rank's check failed: %s\n", what);
  _exit(2);
}

Result<std::unique_ptr<Backend>> connect(RankProcess& rank, DevicePath& path, Duration timeout) {
  auto& meeting = *rank.meeting;
  const auto own = path.offer(*rank.device, rank.position, rank.ranks);
  need(own.has_value() && own->size() <= kMostOffer, "an offer");
  std::memcpy(meeting.offers[rank.position], own->data(), own->size());
  meeting.offered[rank.position] = own->size();
  meeting.wait_for(rank.ranks);
  std::vector<DeviceMember> members;
  for (int r = 0; r < rank.ranks; ++r)
    members.push_back({.rank = r, .offer = {meeting.offers[r], meeting.offered[r]}});
  need(path.check(members).has_value(), "a check of the members");
  auto made = path.connect(
      {.position = rank.position, .members = members, .gpu = rank.gpu, .timeout = timeout});
  while (meeting.arrived < 2 * rank.ranks) {
    static bool told = false;
    if (!std::exchange(told, true)) ++meeting.arrived;
    std::this_thread::yield();
  }
  return made;
}

void run_rank(RankProcess rank, const std::string& plan, Duration timeout,
              const std::function<void(RankProcess&)>& body) {
  const SoftwareDevice software(plan);
  OpenDevice gpu(software.open(0));
  const auto path = make_ipc_path();
  rank.software = &software;
  rank.gpu = &gpu;
  rank.device = &gpu.device();
  rank.stream = *gpu.device().make_stream();
  auto made = connect(rank, *path, timeout);
  need(made.has_value(), made ? "" : made.error().message.c_str());
  rank.backend = made->get();
  body(rank);
  need(software.findings().empty(), "no findings");
  // Peers may still read this rank's slots.
  ++rank.meeting->arrived;
  while (rank.meeting->arrived < 3 * rank.ranks) std::this_thread::yield();
  made->reset();
  _exit(0);
}

/// Runs `body` in a process per rank, all on one device. The result is the exit status of each.
std::vector<int> run_ranks(int ranks, const std::string& plan,
                           const std::function<void(RankProcess&)>& body,
                           Duration timeout = Duration::zero()) {
  auto* const meeting = new (mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Meeting;
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(60);
      try {
        run_rank({.position = r, .ranks = ranks, .meeting = meeting}, plan, timeout, body);
      } catch (const std::exception& error) {
        need(false, error.what());
      }
    }
  }
  std::vector<int> ends;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  munmap(meeting, sizeof(Meeting));
  return ends;
}

void finish(RankProcess& rank) {
  while (rank.backend->completed() < rank.backend->started() && rank.backend->health()) {
    if (!rank.backend->progress()) std::this_thread::yield();
  }
}

struct Case {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  double prescale = 1;
  double postscale = 1;
  std::vector<std::uint64_t> lengths{1, 70, 1000};
};

/// The input of one rank.
Content input_of(const Case& what, int position) {
  std::mt19937 random(static_cast<unsigned>(position) + 11);
  std::uint64_t all = 0;
  for (const auto length : what.lengths) all += length;
  return elements_of(what.dtype, all, random, false);
}

/// All-reduces tensors, and compares them with a reduction of host memory.
void check_case(RankProcess& rank, const Case& what) {
  const auto size = size_of(what.dtype);
  const auto own = input_of(what, rank.position);
  auto* const in = static_cast<std::byte*>(*rank.device->allocate(own.size()));
  auto* const out = static_cast<std::byte*>(*rank.device->allocate(own.size()));
  put(*rank.device, in, own, rank.stream);
  const auto ready = *rank.device->make_event();
  need(rank.device->record(ready, rank.stream).has_value(), "a record");
  Bucket bucket{.like = {.op = what.op,
                         .dtype = what.dtype,
                         .prescale = what.prescale,
                         .postscale = what.postscale},
                .device = 0};
  std::uint64_t begin = 0;
  for (const auto length : what.lengths) {
    bucket.parts.push_back(
        {.in = in + begin * size, .out = out + begin * size, .elements = length, .ready = ready});
    begin += length;
  }
  DeviceOutcome outcome{.finished = *rank.device->make_event()};
  bucket.outcome = &outcome;
  const auto begun = rank.backend->start(bucket);
  need(begun.has_value(), begun ? "" : begun.error().message.c_str());
  finish(rank);
  need(outcome.launched, "the launch of a bucket");
  need(rank.device->wait(rank.stream, outcome.finished).has_value(), "a wait for the bucket");
  const auto got = fetch(*rank.device, out, own.size(), rank.stream);
  std::vector<Content> inputs;
  std::vector<const void*> pointers;
  for (int r = 0; r < rank.ranks; ++r) inputs.push_back(input_of(what, r));
  for (const auto& input : inputs) pointers.push_back(input.data());
  Content expected(own.size());
  const kernels::Reduction reduction{.dtype = what.dtype,
                                     .op = what.op,
                                     .postscale = what.prescale * what.postscale,
                                     .ranks = rank.ranks};
  kernels::reduce_kernel(what.dtype, what.op)(reduction, expected.data(), pointers.data(),
                                              rank.ranks, begin);
  need(got == expected, "the right numbers");
}

/// One operation among all ranks, with one part. Ready is the rank's stream.
void run_step(RankProcess& rank, Bucket bucket, Part part) {
  const auto ready = *rank.device->make_event();
  need(rank.device->record(ready, rank.stream).has_value(), "a record");
  part.row_elements = 1;
  part.ready = ready;
  bucket.parts = {part};
  bucket.device = 0;
  DeviceOutcome outcome{.finished = *rank.device->make_event()};
  bucket.outcome = &outcome;
  const auto begun = rank.backend->start(std::move(bucket));
  need(begun.has_value(), begun ? "" : begun.error().message.c_str());
  finish(rank);
  need(rank.device->wait(rank.stream, outcome.finished).has_value(), "a wait for the bucket");
}

/// A reduce-scatter, whose results are gathered in the same memory, is an all-reduce.
void check_halves(RankProcess& rank, const Case& what, const std::vector<std::uint64_t>& rows) {
  const auto size = size_of(what.dtype);
  const auto own = input_of(what, rank.position);
  auto* const block = static_cast<std::byte*>(*rank.device->allocate(own.size()));
  put(*rank.device, block, own, rank.stream);
  const auto first = std::accumulate(rows.begin(), rows.begin() + rank.position, std::uint64_t{0});
  const auto mine = rows[static_cast<std::size_t>(rank.position)];
  auto* const slice = block + first * size;
  Bucket scatter{.like = {.kind = Kind::reducescatter, .op = what.op, .dtype = what.dtype},
                 .parts = {},
                 .rows = rows};
  run_step(rank, scatter, {.in = block, .out = slice, .elements = own.size() / size});
  Bucket gather{.like = {.kind = Kind::allgather, .dtype = what.dtype}, .parts = {}, .rows = rows};
  run_step(rank, gather, {.in = slice, .out = block, .elements = mine});
  const auto got = fetch(*rank.device, block, own.size(), rank.stream);
  std::vector<Content> inputs;
  std::vector<const void*> pointers;
  for (int r = 0; r < rank.ranks; ++r) inputs.push_back(input_of(what, r));
  for (const auto& input : inputs) pointers.push_back(input.data());
  Content expected(own.size());
  const kernels::Reduction reduction{.dtype = what.dtype, .op = what.op, .ranks = rank.ranks};
  kernels::reduce_kernel(what.dtype, what.op)(reduction, expected.data(), pointers.data(),
                                              rank.ranks, own.size() / size);
  need(got == expected, "the right numbers of a reduce-scatter and an all-gather");
}

}  // namespace

TEST_CASE("a reduce-scatter and an all-gather of uneven slices are an all-reduce") {
  const auto ends = run_ranks(3, "seed=3 delay=100", [](RankProcess& rank) {
    for (int number = 0; number < kDTypes; ++number) {
      const Case what{.dtype = static_cast<DType>(number), .op = ReduceOp::max, .lengths = {1000}};
      check_halves(rank, what, {333, 0, 667});
      check_halves(rank, what, {1, 999, 0});
    }
    const auto slot = ipc::kSlotBytes / sizeof(float);
    check_halves(rank, {.lengths = {slot * 3 + 7}}, {slot + 1, 2 * slot - 3, 9});
  });
  CHECK(ends == std::vector<int>(3, 0));
}

TEST_CASE("ranks on one device all-reduce every type and operation by shared device memory") {
  const auto ends = run_ranks(3, "", [](RankProcess& rank) {
    for (int number = 0; number < kDTypes; ++number) {
      for (const auto op :
           {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
        const Signature like{.op = op, .dtype = static_cast<DType>(number)};
        const bool logical = like.dtype == DType::boolean;
        if (logical && op != ReduceOp::min && op != ReduceOp::max) continue;
        need(ipc_takes(like) == !(like.dtype == DType::i64 && op == ReduceOp::average),
             "the kinds that ipc takes");
        if (ipc_takes(like)) check_case(rank, {.dtype = like.dtype, .op = op});
      }
    }
    check_case(rank, {.op = ReduceOp::average, .prescale = 0.5, .postscale = 4});
  });
  CHECK(ends == std::vector<int>(3, 0));
}

TEST_CASE("buckets longer than a slot are cut into pieces, and their order holds under delays") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const auto plan = fmt::format("seed={} delay=300", seed);
    const auto ends = run_ranks(2, plan, [](RankProcess& rank) {
      const auto slot = ipc::kSlotBytes / sizeof(float);
      check_case(rank, {.lengths = {slot / 2, slot * 2, 5, slot - 5}});
      for (std::uint64_t i = 0; i < 5; ++i) check_case(rank, {.lengths = {i * 100, 0, 7}});
    });
    CHECK(ends == std::vector<int>(2, 0));
  }
}

TEST_CASE("a peer that is killed ends the others' buckets after the timeout, and nothing hangs") {
  const auto ends = run_ranks(
      2, "",
      [](RankProcess& rank) {
        if (rank.position == 1) raise(SIGKILL);
        auto* const memory = *rank.device->allocate(400);
        Bucket bucket{.like = {.dtype = DType::f32}, .device = 0};
        bucket.parts.push_back({.in = memory, .out = memory, .elements = 100});
        need(rank.backend->start(bucket).has_value(), "a start");
        finish(rank);
        const auto health = rank.backend->health();
        need(!health && health.error().code == Errc::peer_lost, "a lost peer");
        need(health.error().message.find("position 1") != std::string::npos, "its position");
        rank.backend->abort();
        _exit(0);
      },
      std::chrono::milliseconds(200));
  CHECK(ends == std::vector<int>{0, -SIGKILL});
}

namespace {

/// A bucket whose tensor becomes ready when a gate opens.
struct GatedBucket {
  explicit GatedBucket(RankProcess& rank)
      : device(*rank.device), memory(*device.allocate(400)), ready(*device.make_event()) {
    outcome.finished = *device.make_event();
    rank.software->gate(device, rank.stream, open);
    need(device.record(ready, rank.stream).has_value(), "a record");
    Bucket bucket{.like = {.dtype = DType::f32}, .device = 0, .outcome = &outcome};
    bucket.parts.push_back({.in = memory, .out = memory, .elements = 100, .ready = ready});
    need(rank.backend->start(std::move(bucket)).has_value(), "a start");
  }

  Device& device;
  void* const memory;
  const EventHandle ready;
  DeviceOutcome outcome;
  std::atomic<bool> open{false};
};

/// Blocks: until the process has ended, though nobody has waited for it.
void await_end(pid_t process) {
  pollfd ends{
      .fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0)), .events = POLLIN, .revents = 0};
  while (poll(&ends, 1, -1) != 1) {
  }
}

}  // namespace

TEST_CASE("after an abort a stream can wait for what a busy device still does for a bucket") {
  const auto ends = run_ranks(
      2, "",
      [](RankProcess& rank) {
        if (rank.position == 1) raise(SIGKILL);
        GatedBucket gated(rank);
        finish(rank);
        rank.backend->abort();
        need(gated.outcome.abandoned, "an event behind the last work");
        auto* const other = *rank.device->make_stream();
        need(rank.device->wait(other, gated.outcome.finished).has_value(), "a wait");
        put(*rank.device, gated.memory, Content(400), other);
        gated.open = true;
        gated.open.notify_all();
        static_cast<void>(fetch(*rank.device, gated.memory, 400, other));
        need(rank.software->findings().empty(), "no findings");
        _exit(0);
      },
      std::chrono::milliseconds(200));
  CHECK(ends == std::vector<int>{0, -SIGKILL});
}

TEST_CASE("no stream waits for work that waits for the event of a process that has ended") {
  const auto ends = run_ranks(2, "", [](RankProcess& rank) {
    GatedBucket gated(rank);
    if (rank.position == 1) {
      rank.meeting->process = getpid();
      static_cast<void>(rank.backend->progress());  // It packs, behind its gate.
      raise(SIGKILL);
    }
    while (!gated.outcome.launched) static_cast<void>(rank.backend->progress());
    await_end(rank.meeting->process);
    rank.backend->abort();
    need(!gated.outcome.abandoned, "nothing to wait for");
    gated.open = true;
    gated.open.notify_all();
    _exit(0);
  });
  CHECK(ends == std::vector<int>{0, -SIGKILL});
}

TEST_CASE("a device that fails ends the buckets with the driver's words") {
  const auto ends = run_ranks(2, "", [](RankProcess& rank) {
    rank.software->plan("fail=cuLaunchKernel@1:719");
    auto* const memory = *rank.device->allocate(400);
    Bucket bucket{.like = {.dtype = DType::f32}, .device = 0};
    bucket.parts.push_back({.in = memory, .out = memory, .elements = 100});
    need(rank.backend->start(bucket).has_value(), "a start");
    finish(rank);
    need(!rank.backend->health(), "an error");
    const std::string call = rank.software->driver().names().launch;
    need(rank.backend->health().error().message.find(call) != std::string::npos,
         "the driver's call");
  });
  CHECK(ends == std::vector<int>(2, 0));
}

TEST_CASE("the path ipc is for one host and sixteen ranks") {
  const auto path = make_ipc_path();
  const std::vector<DeviceMember> apart{{.rank = 0, .host = 0}, {.rank = 4, .host = 1}};
  CHECK(path->check(apart).error().message ==
        "'ipc' is for ranks of one host; ranks 0 and 4 are on two");
  CHECK(path->check(std::vector<DeviceMember>(17)).error().code == Errc::unavailable);
  CHECK(path->check(std::vector<DeviceMember>(16)));
  CHECK_FALSE(path->takes({.kind = Kind::broadcast}));
  CHECK_FALSE(path->takes({.op = ReduceOp::adasum}));
  CHECK_FALSE(path->takes({.op = ReduceOp::max, .prescale = 2}));
}
