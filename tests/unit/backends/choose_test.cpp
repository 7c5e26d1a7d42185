// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/choose.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::runtime;

namespace {

BackendRequest request(CpuOperations wanted, int hosts, const std::string& mpi) {
  return {.wanted = wanted,
          .hosts = hosts,
          .mpi = mpi,
          .candidates = {{"gloo", ""}, {"openmpi", ""}, {"mpich", "libmpich.so.12 is missing"}}};
}

std::string reason_of(const BackendChoice& choice, const std::string& name) {
  for (const auto& rejected : choice.rejected) {
    if (rejected.name == name) return rejected.why_not;
  }
  return "not rejected";
}

}  // namespace

TEST_CASE("one host needs nothing but its memory") {
  const auto choice = choose_backend(request(CpuOperations::automatic, 1, "openmpi")).value();
  CHECK(choice.name == "shm");
  CHECK(reason_of(choice, "openmpi") == "shm comes first");
  CHECK(reason_of(choice, "gloo") == "shm comes first");
}

TEST_CASE("between hosts MPI is used by those who run under it, Gloo by the others") {
  const auto under = choose_backend(request(CpuOperations::automatic, 2, "openmpi")).value();
  CHECK(under.name == "openmpi");
  CHECK(reason_of(under, "shm") == "the ranks are on several hosts");
  const auto without = choose_backend(request(CpuOperations::automatic, 2, "")).value();
  CHECK(without.name == "gloo");
  CHECK(reason_of(without, "mpi").find("belongs to no MPI") != std::string::npos);
  const auto broken = choose_backend(request(CpuOperations::automatic, 2, "mpich")).value();
  CHECK(broken.name == "gloo");
  CHECK(reason_of(broken, "mpich") == "libmpich.so.12 is missing");
}

TEST_CASE("what is asked for is used or refused, and never replaced") {
  CHECK(choose_backend(request(CpuOperations::gloo, 1, "openmpi"))->name == "gloo");
  CHECK(choose_backend(request(CpuOperations::mpi, 1, "openmpi"))->name == "openmpi");
  const auto shm = choose_backend(request(CpuOperations::shm, 2, ""));
  REQUIRE_FALSE(shm);
  CHECK(shm.error().code == Errc::unsupported);
  CHECK(shm.error().message.find("the ranks are on several hosts") != std::string::npos);
  CHECK(choose_backend(request(CpuOperations::mpi, 2, ""))
            .error()
            .message.find("start the job with mpirun") != std::string::npos);
}

TEST_CASE("when nothing can be used every reason is told") {
  auto nothing = request(CpuOperations::automatic, 2, "");
  nothing.candidates = {{"gloo", "there is no horo-backend-gloo.so"}};
  const auto choice = choose_backend(nothing);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == Errc::unavailable);
  for (const auto* reason : {"shm: the ranks", "mpi: this process", "gloo: there is no"})
    CHECK(choice.error().message.find(reason) != std::string::npos);
}

TEST_CASE("the MPI in the process counts more than who started it, and two are none") {
  CHECK(mpi_of({}).empty());
  CHECK(mpi_of({.openmpi_launched = true}) == "openmpi");
  CHECK(mpi_of({.mpich_launched = true}) == "mpich");
  CHECK(mpi_of({.mpich_loaded = true, .openmpi_launched = true}) == "mpich");
  CHECK(mpi_of({.openmpi_loaded = true, .mpich_loaded = true}).empty());
}

TEST_CASE("large all-reduces go by hosts where hosts have several ranks") {
  const Hierarchy two_by_two{.hosts = 2, .ranks = 4, .local_ranks = 2, .owners = 2};
  const Signature sum{.kind = Kind::allreduce, .dtype = DType::f32};
  CHECK(choose_way(two_by_two, sum, 1 << 20U, 65536).way == Way::hierarchical);
  CHECK(choose_way(two_by_two, sum, 1024, 65536).reason == "too small for two more steps");
  auto uneven = two_by_two;
  uneven.owners = 1;
  CHECK(choose_way(uneven, sum, 1 << 20U, 65536).reason == "a host has one rank only");
  const Signature average{.kind = Kind::allreduce, .op = ReduceOp::average, .dtype = DType::i8};
  CHECK(choose_way(two_by_two, average, 1 << 20U, 65536).reason == "needs all inputs at once");
  CHECK(choose_way(two_by_two, {.kind = Kind::broadcast}, 1 << 20U, 65536).way == Way::flat);
}
