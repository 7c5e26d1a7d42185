// SPDX-License-Identifier: Apache-2.0
// All-reduce between hosts through the loadable backends, without launcher and agreement, to
// measure the transports alone, flat and hierarchical. One process per host starts its ranks; they
// meet at a key-value server in a third process.
//
//   bench_hosts serve ADDRESS                       prints its listening address
//   bench_hosts rank HOST HOSTS PER_HOST SERVER flat|hierarchical BYTES REPETITIONS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "runtime/backends/hierarchical/hierarchical.hpp"
#include "runtime/backends/module.hpp"
#include "runtime/backends/shm/shm_backend.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::bench {
namespace {

using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a program's own

struct Job {
  int host = 0;
  int hosts = 1;
  int per_host = 1;
  std::string server;
  bool hierarchical = false;
  std::uint64_t bytes = 0;
  int repetitions = 1;
};

constexpr kv::Secret kSecret{};  // The benchmark protects nothing.
constexpr auto kRunTimeout = std::chrono::seconds(60);

/// A rank's view of its host's shared memory, with a region for each step.
struct Local {
  std::unique_ptr<HostMemory> memory;
  std::unique_ptr<SetRegion> scatter;
  std::unique_ptr<SetRegion> gather;
};

Result<Local> attach(int fd, const Job& job, int local) {
  Local result;
  Members everybody;
  for (int l = 0; l < job.per_host; ++l) everybody.emplace_back(l);
  const Rank rank{job.host * job.per_host + local};
  HORO_TRY(result.memory, HostMemory::attach(fd, LocalRank{local}, rank, {}));
  result.memory->slot(result.memory->me()).state.store(RankState::attached);
  result.memory->waker().say_awake();
  HORO_TRY(result.scatter, SetRegion::attach(*result.memory, 0, everybody));
  HORO_TRY(result.gather, SetRegion::attach(*result.memory, 1, everybody));
  return result;
}

Result<std::unique_ptr<Backend>> make_backend(const Job& job, const Communicator& world,
                                              Local& local) {
  HORO_TRY(const auto* gloo, load_usable_module("gloo", HORO_MODULES));
  if (!job.hierarchical) return gloo->make(world);
  HORO_TRY(const auto hierarchy, hierarchy_of(world));
  HierarchicalParts parts;
  if (const auto across = across_hosts(world, hierarchy)) {
    HORO_TRY(parts.across, gloo->make(*across));
  }
  parts.scatter = std::make_unique<ShmBackend>(*local.scatter);
  parts.gather = std::make_unique<ShmBackend>(*local.gather);
  return std::unique_ptr<Backend>(
      std::make_unique<HierarchicalBackend>(std::move(parts), hierarchy));
}

Status all_reduce(Backend& backend, std::vector<float>& values) {
  Bucket bucket{.like = {.elements = values.size()}};
  bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = values.size()});
  HORO_TRY_STATUS(backend.start(std::move(bucket)));
  while (backend.completed() < backend.started()) {
    if (!backend.progress()) std::this_thread::sleep_for(std::chrono::microseconds(30));
    HORO_TRY_STATUS(backend.health());
  }
  return {};
}

Status run_rank(const Job& job, int fd, int local) {
  HORO_TRY(auto memory, attach(fd, job, local));
  HORO_TRY(auto client, kv::Client::connect(job.server, kSecret,
                                            Deadline::in(SteadyClock::instance(), kRunTimeout)));
  KvRendezvousStore place(client);
  Communicator world{.position = job.host * job.per_host + local,
                     .name = "bench",
                     .meeting = &place,
                     .start_timeout = kRunTimeout,
                     .timeout = kRunTimeout};
  for (int r = 0; r < job.hosts * job.per_host; ++r) {
    world.members.push_back(r);
    world.hosts.push_back(r / job.per_host);
  }
  HORO_TRY(const auto backend, make_backend(job, world, memory));
  std::vector<float> values(job.bytes / sizeof(float), 1);
  std::vector<double> times;
  for (int i = 0; i <= job.repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    HORO_TRY_STATUS(all_reduce(*backend, values));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    // The first repetition touches the memory for the first time, so it does not count.
    if (i > 0) times.push_back(took.count());
    std::fill(values.begin(), values.end(), 1.0F);
  }
  std::sort(times.begin(), times.end());
  if (world.position == 0)
    std::printf("%s %llu bytes: median %.3f ms, least %.3f ms\n",
                job.hierarchical ? "hierarchical" : "flat",
                static_cast<unsigned long long>(job.bytes), times[times.size() / 2], times[0]);
  return {};
}

int run_host(const Job& job) {
  const auto fd = make_board({.local_size = job.per_host, .nonce = 1});
  if (!fd) return 1;
  std::vector<pid_t> ranks;
  for (int local = 0; local < job.per_host; ++local) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto status = run_rank(job, *fd, local);
      if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
      std::fflush(nullptr);
      _exit(status ? 0 : 1);
    }
    ranks.push_back(pid);
  }
  int worst = 0;
  for (const pid_t pid : ranks) {
    int status = 0;
    waitpid(pid, &status, 0);
    worst = std::max(worst, status == 0 ? 0 : 1);
  }
  return worst;
}

int serve(const char* address) {
  const auto loop = Loop::make().value();
  kv::ServerOptions options;
  options.listen = {{address, 0}};
  const auto server = kv::Server::start(*loop, kSecret, options);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  std::puts((*server)->address().c_str());
  std::fflush(stdout);
  loop->run();
  return 0;
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  using namespace horo::bench;
  if (argc == 3 && std::string_view(argv[1]) == "serve") return serve(argv[2]);
  if (argc != 9 || std::string_view(argv[1]) != "rank") {
    std::fputs("usage: see the head of bench/hosts_main.cpp\n", stderr);
    return 2;
  }
  return run_host({.host = std::atoi(argv[2]),
                   .hosts = std::atoi(argv[3]),
                   .per_host = std::atoi(argv[4]),
                   .server = argv[5],
                   .hierarchical = std::string_view(argv[6]) == "hierarchical",
                   .bytes = std::strtoull(argv[7], nullptr, 10),
                   .repetitions = std::atoi(argv[8])});
}
