// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/backends/hierarchical/observe.hpp"

using namespace horo;
using namespace horo::runtime;
using horo::timeline::PathReason;

namespace {

/// `ranks` in equal parts on `hosts`.
std::vector<int> spread(int ranks, int hosts) {
  std::vector<int> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(r * hosts / ranks);
  return host_of;
}

BackendRequest request(CpuOperations wanted, int hosts, const std::string& mpi) {
  return {.wanted = wanted,
          .host_of = spread(2 * hosts, hosts),
          .mpi = mpi,
          .candidates = {
              {"tcp", ""}, {"gloo", ""}, {"openmpi", ""}, {"mpich", "libmpich.so.12 is missing"}}};
}

std::string reason_of(const BackendChoice& choice, const std::string& name) {
  for (const auto& rejected : choice.rejected) {
    if (rejected.name == name) return rejected.why_not;
  }
  return "not rejected";
}

}  // namespace

TEST_CASE("ranks on one host use shared memory, and every other backend has a reason") {
  const auto choice = choose_backend(request(CpuOperations::automatic, 1, "openmpi")).value();
  CHECK(choice.name == "shm");
  CHECK(reason_of(choice, "openmpi") == "shm comes first");
  CHECK(reason_of(choice, "tcp") == "shm comes first");
  CHECK(reason_of(choice, "gloo") == "shm comes first");
}

TEST_CASE("between hosts, ranks under MPI use MPI and other ranks use tcp") {
  const auto under = choose_backend(request(CpuOperations::automatic, 2, "openmpi")).value();
  CHECK(under.name == "openmpi");
  CHECK(reason_of(under, "shm") == "the ranks are on several hosts");
  const auto without = choose_backend(request(CpuOperations::automatic, 2, "")).value();
  CHECK(without.name == "tcp");
  CHECK(reason_of(without, "gloo") == "tcp comes first");
  CHECK(reason_of(without, "mpi").find("belongs to no MPI") != std::string::npos);
  const auto broken = choose_backend(request(CpuOperations::automatic, 2, "mpich")).value();
  CHECK(broken.name == "tcp");
  CHECK(reason_of(broken, "mpich") == "libmpich.so.12 is missing");
}

TEST_CASE("a backend that the user asks for is used or refused, and never replaced") {
  CHECK(choose_backend(request(CpuOperations::gloo, 1, "openmpi"))->name == "gloo");
  CHECK(choose_backend(request(CpuOperations::tcp, 1, "openmpi"))->name == "tcp");
  CHECK(choose_backend(request(CpuOperations::mpi, 1, "openmpi"))->name == "openmpi");
  const auto shm = choose_backend(request(CpuOperations::shm, 2, ""));
  REQUIRE_FALSE(shm);
  CHECK(shm.error().code == Errc::unsupported);
  CHECK(shm.error().message.find("the ranks are on several hosts") != std::string::npos);
  CHECK(choose_backend(request(CpuOperations::mpi, 2, ""))
            .error()
            .message.find("start the job with mpirun") != std::string::npos);
}

TEST_CASE(
    "Gloo by name is refused beyond the ranks that it can connect, with numbers and a way out") {
  auto asked = request(CpuOperations::gloo, 128, "");
  asked.host_of = spread(256, 128);
  CHECK(choose_backend(asked)->name == "gloo");
  asked.host_of = spread(1024, 128);
  const auto many = choose_backend(asked);
  REQUIRE_FALSE(many);
  CHECK(many.error().code == Errc::unsupported);
  CHECK(many.error().message ==
        "HORO_CPU_OPERATIONS asks for a backend that cannot be used; gloo: 1024 ranks would read "
        "145.7 GB of addresses from the job's store, of which Horo allows 2.5 GB; use tcp, which "
        "connects ranks when they need it");
  asked.host_of = spread(64, 8);
  asked.free_descriptors = 60;
  const auto few = choose_backend(asked);
  REQUIRE_FALSE(few);
  for (const auto* word : {"64 ranks need 78 connections", "only 60 more", "ulimit -n", "use tcp"})
    CHECK(few.error().message.find(word) != std::string::npos);
  asked.free_descriptors = 78;
  CHECK(choose_backend(asked)->name == "gloo");
  // Where nothing asks for Gloo, its limit changes no choice.
  asked.wanted = CpuOperations::automatic;
  asked.host_of = spread(1024, 128);
  CHECK(choose_backend(asked)->name == "tcp");
}

TEST_CASE("Gloo is asked to reach the hosts of a process set, and no other hosts of the job") {
  auto asked = request(CpuOperations::gloo, 128, "");
  asked.host_of = {3, 3, 120, 77, 3};
  asked.free_descriptors = 14;
  CHECK(choose_backend(asked)->name == "gloo");
  asked.free_descriptors = 13;
  const auto few = choose_backend(asked);
  REQUIRE_FALSE(few);
  CHECK(few.error().message.find("5 ranks need 14 connections") != std::string::npos);
}

TEST_CASE("the descriptors that a process may still open are counted") {
  const auto before = free_descriptors();
  const std::array<int, 2> open{dup(0), dup(0)};
  CHECK(free_descriptors() == before - open.size());
  for (const int fd : open) close(fd);
  CHECK(free_descriptors() == before);
}

TEST_CASE("when no backend can be used, the error has every reason") {
  auto nothing = request(CpuOperations::automatic, 2, "");
  nothing.candidates = {{"tcp", "there is no horo-backend-tcp.so"},
                        {"gloo", "there is no horo-backend-gloo.so"}};
  const auto choice = choose_backend(nothing);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == Errc::unavailable);
  for (const auto* reason :
       {"shm: the ranks", "mpi: this process", "tcp: there is no", "gloo: there is no"})
    CHECK(choice.error().message.find(reason) != std::string::npos);
}

TEST_CASE(
    "a loaded MPI counts more than the program that started the process, and two count as none") {
  CHECK(mpi_of({}).empty());
  CHECK(mpi_of({.openmpi_launched = true}) == "openmpi");
  CHECK(mpi_of({.mpich_launched = true}) == "mpich");
  CHECK(mpi_of({.mpich_loaded = true, .openmpi_launched = true}) == "mpich");
  CHECK(mpi_of({.openmpi_loaded = true, .mpich_loaded = true}).empty());
}

TEST_CASE("large all-reduces go by hosts where hosts have several ranks") {
  const Hierarchy two_by_two{.hosts = 2, .ranks = 4, .local_ranks = 2, .owners = 2};
  const Signature sum{.kind = Kind::allreduce, .dtype = DType::f32};
  const auto table = BackendTable::of_hosts({.name = "gloo"}, two_by_two, {});
  CHECK(table.uses_hosts());
  CHECK(table.choose(MemoryKind::host, sum, 1 << 20U).path == BucketPath::by_hosts);
  CHECK(table.choose(MemoryKind::host, sum, 65536).path == BucketPath::by_hosts);
  const auto small = table.choose(MemoryKind::host, sum, 65535);
  CHECK(small.path == BucketPath::whole);
  CHECK(small.reason == PathReason::too_small);
  const Signature average{.kind = Kind::allreduce, .op = ReduceOp::average, .dtype = DType::i8};
  const auto whole = table.choose(MemoryKind::host, average, 1 << 20U);
  CHECK(whole.path == BucketPath::whole);
  CHECK(whole.reason == PathReason::needs_all_inputs);
  const auto other = table.choose(MemoryKind::host, {.kind = Kind::broadcast}, 1 << 20U);
  CHECK(other.path == BucketPath::whole);
  CHECK(other.reason == PathReason::no_allreduce);
}

TEST_CASE("a set whose smallest host has one rank moves all buckets whole, and says why") {
  const Hierarchy uneven{.hosts = 2, .ranks = 3, .local_ranks = 2, .owners = 1, .most_local = 2};
  const Signature sum{.kind = Kind::allreduce, .dtype = DType::f32};
  const auto table = BackendTable::of_hosts({.name = "gloo"}, uneven, {});
  CHECK_FALSE(table.uses_hosts());
  CHECK(table.choose(MemoryKind::host, sum, 1 << 20U).path == BucketPath::whole);
  CHECK(table.choose(MemoryKind::host, sum, 1 << 20U).reason == PathReason::one_rank_on_a_host);
  CHECK(table.describe().find("hierarchical (a host has one rank only)") != std::string::npos);
}

TEST_CASE("all-reduces by hosts that the user has switched off keep that as their reason") {
  const Hierarchy two_by_two{.hosts = 2, .ranks = 4, .local_ranks = 2, .owners = 2};
  const Signature sum{.kind = Kind::allreduce, .dtype = DType::f32};
  const auto table =
      BackendTable::of_hosts({.name = "gloo"}, two_by_two, {.why_not = PathReason::switched_off});
  CHECK(table.choose(MemoryKind::host, sum, 1 << 20U).path == BucketPath::whole);
  CHECK(table.choose(MemoryKind::host, sum, 1 << 20U).reason == PathReason::switched_off);
}

TEST_CASE("a set refuses buckets in device memory with a reason") {
  const auto table = BackendTable::of_one_host();
  CHECK(table.backend() == "shm");
  for (const auto kind : {Kind::allreduce, Kind::allgather, Kind::broadcast, Kind::barrier,
                          Kind::reducescatter, Kind::alltoall}) {
    CHECK(table.choose(MemoryKind::host, {.kind = kind}, 8).path == BucketPath::whole);
    const auto refused = table.choose(MemoryKind::device, {.kind = kind}, 8);
    CHECK(refused.path == BucketPath::refused);
    CHECK(refused.reason == PathReason::device_memory);
  }
  CHECK(table.describe().find("device memory (the ranks choose") != std::string::npos);
}

TEST_CASE(
    "with encryption tcp is used, and a backend that cannot encrypt is refused with the reason") {
  auto under_mpi = request(CpuOperations::automatic, 2, "openmpi");
  under_mpi.encrypts = true;
  const auto choice = choose_backend(under_mpi).value();
  CHECK(choice.name == "tcp");
  CHECK(reason_of(choice, "openmpi") ==
        "openmpi cannot encrypt, and HORO_ENCRYPT (--encrypt) is on; only tcp can");
  for (const auto wanted : {CpuOperations::gloo, CpuOperations::mpi}) {
    auto named = request(wanted, 2, "openmpi");
    named.encrypts = true;
    const auto refused = choose_backend(named);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::unsupported);
    CHECK(refused.error().message.find("cannot encrypt") != std::string::npos);
  }
  auto one_host = request(CpuOperations::automatic, 1, "");
  one_host.encrypts = true;
  CHECK(choose_backend(one_host)->name == "shm");
}
