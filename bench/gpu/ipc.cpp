// SPDX-License-Identifier: Apache-2.0
// All-reduces of two ranks on one device by the backend ipc, against a device copy of the same
// size.
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/gpu/device_timing.hpp"
#include "runtime/backends/ipc/ipc_path.hpp"

namespace horo::bench {

namespace {

using runtime::DeviceMember;

constexpr int kRanks = 2;
constexpr int kRepeats = 200;

/// Memory that both processes share.
struct Meeting {
  std::atomic<int> arrived{0};
  char offers[kRanks][runtime::kMostOffer];
  std::size_t offered[kRanks];

  void wait_for(int count) {
    ++arrived;
    while (arrived < count) std::this_thread::yield();
  }
};

double one_sum(runtime::Backend& backend, const Bench& bench, void* memory, std::uint64_t bytes) {
  runtime::Bucket bucket{.like = {.dtype = runtime::DType::f32}, .device = 0};
  bucket.parts.push_back({.in = memory, .out = memory, .elements = bytes / sizeof(float)});
  const auto begin = std::chrono::steady_clock::now();
  must(backend.start(bucket));
  while (backend.completed() < backend.started()) {
    backend.progress();
    must(backend.health());
  }
  static_cast<void>(bench);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

void run_rank(int position, Meeting& meeting) {
  Bench bench;
  const auto path = runtime::make_ipc_path();
  const auto own = must(path->offer(*bench.device, position, kRanks));
  std::memcpy(meeting.offers[position], own.data(), own.size());
  meeting.offered[position] = own.size();
  meeting.wait_for(kRanks);
  std::vector<DeviceMember> members;
  for (int r = 0; r < kRanks; ++r)
    members.push_back({.rank = r, .offer = {meeting.offers[r], meeting.offered[r]}});
  const auto backend = must(path->connect({.position = position,
                                           .members = members,
                                           .gpu = &bench.gpu,
                                           .start_timeout = std::chrono::seconds(10)}));
  int met = 2;
  for (std::uint64_t bytes = 4; bytes <= (1U << 20U); bytes *= 8) {
    void* const memory = must(bench.device->allocate(bytes));
    void* const other = must(bench.device->allocate(bytes));
    std::vector<double> sums;
    std::vector<double> copies;
    for (int i = 0; i < kRepeats; ++i) sums.push_back(one_sum(*backend, bench, memory, bytes));
    meeting.wait_for(kRanks * met++);
    for (int i = 0; i < kRepeats && position == 0; ++i) {
      copies.push_back(
          bench.time(1, [&] { must(bench.device->copy(other, memory, bytes, bench.stream)); }));
    }
    meeting.wait_for(kRanks * met++);
    if (position == 0) {
      report(fmt::format("ipc all-reduce of {} B", bytes), "us", Spread(sums));
      report(fmt::format("device copy of {} B", bytes), "us", Spread(copies));
    }
  }
  meeting.wait_for(kRanks * met);  // The other one may still read this rank's slots.
}

}  // namespace

void measure_ipc() {
  auto* const meeting = new (mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Meeting;
  std::vector<pid_t> children;
  for (int r = 0; r < kRanks; ++r) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    run_rank(r, *meeting);
    std::exit(0);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) continue;
    // The other one waits for it.
    if (failed++ == 0) {
      for (const pid_t other : children) kill(other, SIGKILL);
    }
  }
  if (failed != 0) std::exit(1);
}

}  // namespace horo::bench
