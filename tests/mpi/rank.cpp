// SPDX-License-Identifier: Apache-2.0
// One rank under mpirun. It uses MPI only through the module, like libhoro. With
// HORO_RANK_BRINGS_MPI it is a program that has initialised MPI itself, for one thread.
//
// usage: rank MODULE SCENARIO
#include <chrono>
#include <cstdio>
#include <random>
#include <string_view>
#include <thread>
#include <unistd.h>

#if defined(HORO_RANK_BRINGS_MPI)
#include <mpi.h>
#endif

#include "runtime/backends/module.hpp"
#include "tests/support/random_buckets.hpp"

using namespace horo;
using namespace horo::test;

namespace {

Communicator world_of(const Exchange& exchange) {
  Communicator world{.position = exchange.rank(), .name = "world"};
  for (int r = 0; r < exchange.size(); ++r) {
    world.members.push_back(r);
    world.hosts.push_back(0);
  }
  return world;
}

Status finish(Backend& backend) {
  while (backend.completed() < backend.started()) {
    if (!backend.progress()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    HORO_TRY_STATUS(backend.health());
  }
  return {};
}

std::vector<Case> make_cases(int size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Maker maker{random, static_cast<std::size_t>(size)};
  std::vector<Case> cases;
  for (int i = 0; i < 60; ++i) cases.push_back(maker.make());
  for (const auto dtype : {DType::f32, DType::i8, DType::bf16}) {  // Makes several segments.
    Case c{.like = {.op = ReduceOp::average, .dtype = dtype, .prescale = 2}};
    c.tensors.push_back(maker.same_everywhere(c.like, 3'000'001));
    for (const auto& expected : c.tensors[0].expected)
      c.tensors[0].out.emplace_back(expected.size());
    cases.push_back(std::move(c));
  }
  return cases;
}

Status start_cases(Backend& backend, int rank, std::vector<Case>& cases) {
  for (auto& c : cases)
    HORO_TRY_STATUS(backend.start(bucket_of(c, static_cast<std::size_t>(rank))));
  return {};
}

Status check_cases(int rank, const std::vector<Case>& cases, std::uint64_t seed) {
  const auto me = static_cast<std::size_t>(rank);
  for (const auto& c : cases) {
    for (const auto& t : c.tensors) {
      if (t.out[me] != t.expected[me])
        return fail(Errc::mismatch, "rank {}: {} of {} {}, seed {}", rank, name(c.like.kind),
                    name(c.like.op), name(c.like.dtype), seed);
    }
  }
  return {};
}

Status run_cases(Backend& backend, int rank, int size, std::uint64_t seed) {
  auto cases = make_cases(size, seed);
  HORO_TRY_STATUS(start_cases(backend, rank, cases));
  HORO_TRY_STATUS(finish(backend));
  return check_cases(rank, cases, seed);
}

Status all_kinds(const ModuleEntry& module, Exchange& exchange) {
  HORO_TRY(const auto seed, exchange.broadcast(std::to_string(std::random_device{}())));
  HORO_TRY(const auto backend, module.make(world_of(exchange)));
  return run_cases(*backend, exchange.rank(), exchange.size(), std::stoull(seed));
}

/// The ranks with even numbers, or those with odd ones.
Communicator half_of(const Exchange& exchange) {
  auto half = world_of(exchange);
  const int parity = exchange.rank() % 2;
  std::erase_if(half.members, [&](int rank) { return rank % 2 != parity; });
  half.hosts.assign(half.members.size(), 0);
  half.position = exchange.rank() / 2;
  half.name = parity == 0 ? "even" : "odd";
  return half;
}

/// Runs two independent sets at the same time.
Status two_sets(const ModuleEntry& module, Exchange& exchange) {
  const auto half = half_of(exchange);
  HORO_TRY(const auto backend, module.make(half));
  return run_cases(*backend, half.position, half.size(), 7);
}

/// A set that is added later connects without waiting for its members, which first finish what they
/// do together. Its operations move at the same time as those of all ranks.
Status later_set(const ModuleEntry& module, Exchange& exchange) {
  const int rank = exchange.rank();
  HORO_TRY(const auto world, module.make(world_of(exchange)));
  auto half = half_of(exchange);
  half.starting = false;
  half.slot = 2;
  std::unique_ptr<Backend> later;
  if (rank < 2) {
    HORO_TRY(later, module.make(half));
  }
  HORO_TRY_STATUS(run_cases(*world, rank, exchange.size(), 3));
  if (rank >= 2) {
    HORO_TRY(later, module.make(half));
  }
  auto of_all = make_cases(exchange.size(), 4);
  auto of_half = make_cases(half.size(), 5);
  HORO_TRY_STATUS(start_cases(*world, rank, of_all));
  HORO_TRY_STATUS(start_cases(*later, half.position, of_half));
  while (world->completed() < world->started() || later->completed() < later->started()) {
    world->progress();
    later->progress();
    HORO_TRY_STATUS(world->health());
    HORO_TRY_STATUS(later->health());
  }
  HORO_TRY_STATUS(check_cases(rank, of_all, 4));
  return check_cases(half.position, of_half, 5);
}

/// One rank alone makes more sets, one after the other, than MPICH has communicators. With several
/// ranks this would take too long.
Status many_sets(const ModuleEntry& module, Exchange& exchange) {
  const int sets = exchange.size() == 1 ? 3000 : 100;
  for (int i = 0; i < sets; ++i) {
    HORO_TRY(const auto backend, module.make(world_of(exchange)));
    float value = 1;
    Bucket bucket{.like = {.elements = 1}};
    bucket.parts.push_back({.in = &value, .out = &value, .elements = 1});
    HORO_TRY_STATUS(backend->start(std::move(bucket)));
    HORO_TRY_STATUS(finish(*backend));
    if (value != static_cast<float>(exchange.size()))
      return fail(Errc::mismatch, "set {}: {} ranks add up to {}", i, exchange.size(), value);
  }
  return {};
}

Status exchanges(const ModuleEntry&, Exchange& exchange) {
  const std::string text(100'000, 'x');
  HORO_TRY(const auto told, exchange.broadcast(exchange.rank() == 0 ? text : "not this"));
  if (told != text) return fail(Errc::mismatch, "broadcast gave {} bytes", told.size());
  HORO_TRY(const auto all,
           exchange.gather(std::string(static_cast<std::size_t>(exchange.rank()), 'y')));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] != std::string(r, 'y'))
      return fail(Errc::mismatch, "gather of rank {}: {}", r, all[r]);
  }
  if (exchange.local_size() != exchange.size() || exchange.local_rank() != exchange.rank())
    return fail(Errc::mismatch, "{} local ranks of {}", exchange.local_size(), exchange.size());
  return {};
}

/// A peer that makes no progress is reported by name, and afterwards nothing writes to the buffer.
Status silent_peer(const ModuleEntry& module, Exchange& exchange) {
  auto world = world_of(exchange);
  world.timeout = std::chrono::milliseconds(300);
  HORO_TRY(const auto backend, module.make(world));
  std::vector<std::int8_t> values(std::size_t{1} << 24U, 1);
  Bucket bucket{.like = {.op = ReduceOp::max, .dtype = DType::i8, .elements = values.size()}};
  bucket.parts.push_back({.in = values.data(), .out = values.data(), .elements = values.size()});
  HORO_TRY_STATUS(backend->start(std::move(bucket)));
  if (exchange.rank() == 0) {
    const auto status = finish(*backend);
    if (status || status.error().code != Errc::peer_lost ||
        status.error().message.find("rank 1") == std::string::npos)
      return fail(Errc::mismatch, "{}",
                  status ? "no rank was reported lost" : status.error().message);
    backend->abort();
    std::fill(values.begin(), values.end(), std::int8_t{-7});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const auto value : values) {
      if (value != -7) return fail(Errc::mismatch, "a buffer was touched after the error");
    }
  }
  return {};
}

Status run_scenario(const ModuleEntry& module, Exchange& exchange, std::string_view scenario) {
  if (scenario == "all_kinds") return all_kinds(module, exchange);
  if (scenario == "two_sets") return two_sets(module, exchange);
  if (scenario == "later_set") return later_set(module, exchange);
  if (scenario == "many_sets") return many_sets(module, exchange);
  if (scenario == "exchanges") return exchanges(module, exchange);
  if (scenario == "silent_peer") return silent_peer(module, exchange);
  return fail(Errc::invalid_argument, "no scenario '{}'", scenario);
}

Status run_rank(const char* name, std::string_view scenario) {
  HORO_TRY(const auto* module, load_usable_module(name, HORO_TEST_MODULES));
  HORO_TRY(const auto exchange, module->exchange());
  auto status = run_scenario(*module, *exchange, scenario);
  // Every rank waits for the slowest one, which may still need data from the others.
  if (scenario == "silent_peer") {
    if (exchange->rank() == 0 && status) std::puts("rank 0 gave up rank 1");
    std::fflush(stdout);
    if (exchange->rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    _exit(status ? 0 : 1);
  }
  HORO_TRY(const auto ends, exchange->gather(status ? "ok" : status.error().message));
  for (const auto& end : ends) {
    if (end != "ok") return fail(Errc::mismatch, "{}", end);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
#if defined(HORO_RANK_BRINGS_MPI)
  MPI_Init(&argc, &argv);
#endif
  const auto status = argc == 3
                          ? run_rank(argv[1], argv[2])
                          : Status(fail(Errc::invalid_argument, "usage: rank MODULE SCENARIO"));
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
#if defined(HORO_RANK_BRINGS_MPI)
  MPI_Finalize();
#endif
  return status ? 0 : 1;
}
