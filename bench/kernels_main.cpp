// SPDX-License-Identifier: Apache-2.0
// Speed of the reduction kernels.
//
//   bench_kernels table             every type, operation and instruction set; 2 inputs,
//                                   in the cache and in memory
//   bench_kernels in-place P MIB    P pinned processes reduce P shared buffers in place, compared
//                                   with the bare loop
//
// GB/s count bytes read and written. The program measures processor time, not elapsed time, and
// runs all variants of a round one after another, so that a busy machine affects all equally.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "runtime/kernels/kernels.hpp"

namespace {

using horo::kernels::DType;
using horo::kernels::Isa;
using horo::kernels::ReduceOp;
using horo::kernels::Reduction;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Zeroed memory that children share; it is never freed.
template <typename T>
std::span<T> shared(std::size_t count) {
  void* const memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "bench_kernels: cannot allocate {} bytes of shared memory\n",
               count * sizeof(T));
    std::exit(1);
  }
  return {static_cast<T*>(memory), count};
}

/// GB/s of reducing two inputs of `bytes` each into a third buffer.
double speed(const Reduction& what, Isa isa, std::size_t bytes) {
  static const auto memory = shared<char>(3 * (std::size_t{32} << 20));
  const std::size_t third = memory.size() / 3;
  const void* const sources[] = {memory.data(), memory.data() + third};
  const auto kernel = horo::kernels::reduce_kernel(what.dtype, what.op, isa);
  const std::size_t count = bytes / horo::runtime::size_of(what.dtype);
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes);
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    const double start = processor_seconds();
    for (std::size_t i = 0; i < repeats; ++i)
      kernel(what, memory.data() + 2 * third, sources, 2, count);
    rounds.push_back((processor_seconds() - start) / static_cast<double>(repeats));
  }
  return 3.0 * static_cast<double>(bytes) / median(rounds) / 1e9;
}

void print_table() {
  fmt::print("{:10} {:8} {:9} {:>12} {:>12}\n", "type", "op", "isa", "64 KiB GB/s", "32 MiB GB/s");
  for (int d = 0; d < horo::runtime::kDTypes; ++d) {
    for (int o = 0; o < horo::runtime::kReduceOps; ++o) {
      for (int i = 0; i < horo::kernels::kIsas; ++i) {
        const auto isa = static_cast<Isa>(i);
        const Reduction what{
            .dtype = static_cast<DType>(d), .op = static_cast<ReduceOp>(o), .ranks = 2};
        if (!horo::runtime::is_reduce_op(o)) continue;
        if (horo::kernels::reduce_kernel(what.dtype, what.op, isa) == nullptr) continue;
        fmt::print("{:10} {:8} {:9} {:12.2f} {:12.2f}\n", horo::runtime::name(what.dtype),
                   horo::runtime::name(what.op), horo::kernels::name(isa),
                   speed(what, isa, std::size_t{64} << 10),
                   speed(what, isa, std::size_t{32} << 20));
      }
    }
  }
}

/// A barrier of `ranks` processes in shared memory.
struct Barrier {
  std::atomic<int> arrived;
  std::atomic<int> round;

  void wait(int ranks) {
    const int here = round.load();
    if (arrived.fetch_add(1) == ranks - 1) {
      arrived = 0;
      round.fetch_add(1);
      return;
    }
    while (round.load() == here) sched_yield();
  }
};

using Buffers = std::vector<float*>;

/// One of the compared loops: it reduces `count` elements of all buffers, starting at `from`.
struct Variant {
  std::string_view name;
  void (*run)(const Buffers& buffers, std::size_t mine, std::size_t from, std::size_t count);
};

void bare_loop(const Buffers& buffers, std::size_t mine, std::size_t from, std::size_t count) {
  for (std::size_t q = 0; q < buffers.size(); ++q) {
    if (q == mine) continue;
    float* __restrict to = buffers[mine] + from;
    const float* __restrict add = buffers[q] + from;
    for (std::size_t i = 0; i < count; ++i) to[i] += add[i];
  }
  for (std::size_t q = 0; q < buffers.size(); ++q) {
    if (q != mine) std::memcpy(buffers[q] + from, buffers[mine] + from, count * sizeof(float));
  }
}

template <Isa kIsa>
void kernel(const Buffers& buffers, std::size_t, std::size_t from, std::size_t count) {
  std::vector<void*> places;
  for (float* const buffer : buffers) places.push_back(buffer + from);
  const auto n = static_cast<int>(places.size());
  horo::kernels::reduce_to_many_kernel(DType::f32, ReduceOp::sum, kIsa)({}, places.data(), n,
                                                                        places.data(), n, count);
}

constexpr int kRounds = 31;

void measure_rank(const Buffers& buffers, std::size_t mine, std::size_t share,
                  std::span<const Variant> variants, Barrier& barrier, double* seconds) {
  constexpr std::size_t kBlock = 16384;
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(mine % static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);
  const auto ranks = static_cast<int>(buffers.size());
  for (int round = 0; round < kRounds; ++round) {
    for (const Variant& variant : variants) {
      barrier.wait(ranks);
      const double start = processor_seconds();
      for (std::size_t at = 0; at < share; at += kBlock) {
        variant.run(buffers, mine, mine * share + at, std::min(kBlock, share - at));
      }
      *seconds++ = processor_seconds() - start;
    }
  }
}

void compare_in_place(std::size_t ranks, std::size_t mib) {
  std::vector<Variant> variants{{"bare loop", bare_loop}, {"baseline", kernel<Isa::baseline>}};
  if (horo::kernels::supported(Isa::avx2)) variants.push_back({"avx2", kernel<Isa::avx2>});
  if (horo::kernels::supported(Isa::avx512)) variants.push_back({"avx512", kernel<Isa::avx512>});
  const std::size_t count = (mib << 20) / sizeof(float);
  const std::size_t each = kRounds * variants.size();
  const auto seconds = shared<double>(each * ranks);
  auto& barrier = shared<Barrier>(1)[0];
  Buffers buffers;
  for (std::size_t r = 0; r < ranks; ++r) buffers.push_back(shared<float>(count).data());
  for (std::size_t r = 0; r < ranks; ++r) {
    if (fork() != 0) continue;
    measure_rank(buffers, r, count / ranks, variants, barrier, seconds.data() + r * each);
    _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  for (std::size_t v = 0; v < variants.size(); ++v) {
    std::vector<double> ms;
    std::vector<double> ratios;
    for (std::size_t at = v; at < each * ranks; at += variants.size()) {
      ms.push_back(seconds[at] * 1e3);
      ratios.push_back(seconds[at] / seconds[at - v]);
    }
    fmt::print("{:10} {:8.3f} ms of each processor, {:.3f} of the bare loop\n", variants[v].name,
               median(ms), median(ratios));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "table") {
    print_table();
    return 0;
  }
  const long ranks = argc == 4 ? std::atol(argv[2]) : 0;
  const long mib = argc == 4 ? std::atol(argv[3]) : 0;
  if (mode != "in-place" || ranks < 1 || mib < 1) {
    fmt::print(stderr, "usage: bench_kernels table | bench_kernels in-place RANKS MIB\n");
    return 2;
  }
  compare_in_place(static_cast<std::size_t>(ranks), static_cast<std::size_t>(mib));
  return 0;
}
