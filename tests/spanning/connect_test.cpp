// SPDX-License-Identifier: Apache-2.0
// Ranks that take long to connect, or to return from a callback, hold up nobody and are not taken
// for ranks that do not answer.
#include <array>
#include <cstdlib>

#include <catch2/catch.hpp>

#include "tests/spanning/gate.hpp"
#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

/// Waits for one operation of the world. Returns "" or what went wrong.
std::string complete_one(Session& session, const std::string& name) {
  const auto id = session.declare(kWorld, name, vector_of(Kind::allreduce, DType::i32, 100));
  if (!id) return id.error().message;
  std::vector<std::int32_t> values(100);
  const auto operation = session.submit(kWorld, *id, {.in = values.data(), .out = values.data()});
  if (!operation) return operation.error().message;
  if (!wait_for(session, **operation)) return "it hangs";
  const auto message = (*operation)->message();
  session.operations().put(**operation);
  return message;
}

/// A job on three hosts whose ranks connect by the gated module.
struct GatedHosts {
  GatedHosts() {
    const auto address = reinterpret_cast<std::uintptr_t>(&gate);
    setenv("HORO_TEST_GATE", fmt::format("{:x}", address).c_str(), 1);
    hosts.options.hosts.connect.modules = HORO_TEST_GATED_MODULES;
  }

  Gate gate;
  TestHosts hosts{{{0}, {1}, {2}}};
};

}  // namespace

TEST_CASE("operations of the world complete while ranks connect for a new set") {
  GatedHosts gated;
  std::array<std::string, 3> wrong;
  std::atomic<int> done{0};
  gated.hosts.run([&](Session& session, int rank) {
    auto& text = wrong[static_cast<std::size_t>(rank)];
    if (rank == 0) gated.gate.closed = true;
    text = complete_one(session, "the gate is closed");
    std::string added = "no result";
    std::thread adder([&] {
      const auto id = session.add_set({Rank{0}, Rank{1}});
      added = id ? "" : id.error().message;
    });
    while (gated.gate.waiting != 2) std::this_thread::yield();
    text += complete_one(session, "meanwhile");
    if (++done == 3) gated.gate.closed = false;
    adder.join();
    text += added;
  });
  CHECK(wrong == std::array<std::string, 3>{});
}

TEST_CASE("a program that turns to MPI later adds process sets as the job has begun") {
  GatedHosts gated;
  std::array<std::string, 3> wrong;
  std::atomic<int> ready{0};
  gated.hosts.run([&](Session& session, int rank) {
    auto& text = wrong[static_cast<std::size_t>(rank)];
    text = complete_one(session, "before");
    // As a library does that starts an MPI in this process.
    if (++ready == 3) {
      setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
      ++ready;
    }
    while (ready < 4) std::this_thread::yield();
    const auto id = session.add_set({Rank{0}, Rank{1}});
    if (!id) text += id.error().message;
  });
  unsetenv("OMPI_COMM_WORLD_SIZE");
  CHECK(wrong == std::array<std::string, 3>{});
}
