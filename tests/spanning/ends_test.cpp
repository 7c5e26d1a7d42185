// SPDX-License-Identifier: Apache-2.0
// How sessions over several hosts end: epoch after epoch, ranks that leave before others, losses.
#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

/// Waits for a sum that cannot complete, and gives its end.
std::pair<Errc, std::string> wait_in_vain(Session& session, const std::string& name) {
  const auto id = session.declare(kWorld, name, vector_of(Kind::allreduce, DType::f32, 3000));
  if (!id) return {id.error().code, id.error().message};
  std::vector<float> values(3000);
  const auto operation = session.submit(kWorld, *id, {.in = values.data(), .out = values.data()});
  if (!operation) return {operation.error().code, operation.error().message};
  if (!wait_for(session, **operation)) return {Errc::timed_out, "it hangs"};
  return {(*operation)->status(), (*operation)->message()};
}

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("epoch after epoch on the same hosts, nothing grows") {
  TestHosts hosts({{0, 1}, {2}});
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  for (int epoch = 0; epoch < 12; ++epoch) {
    std::atomic<int> wrong{0};
    hosts.run([&](Session& session, int) {
      if (!sum(session, kWorld, "x", 2000, 3).empty()) ++wrong;
    });
    REQUIRE(wrong == 0);
    if (epoch != 3) continue;
    descriptors = entries_of("/proc/self/fd");
    threads = entries_of("/proc/self/task");
  }
  CHECK(entries_of("/proc/self/fd") <= descriptors + 3);  // The server's side closes on its own.
  CHECK(entries_of("/proc/self/task") <= threads);
}

TEST_CASE("whoever shuts down first, the others hear that nothing can complete") {
  for (const int first : {0, 1, 2, 3}) {
    TestHosts hosts({{0, 1}, {2, 3}});
    std::atomic<int> heard{0};
    hosts.run([&](Session& session, int rank) {
      if (!sum(session, kWorld, "before", 100, 4).empty()) return;
      if (rank == first) return;
      const auto status = wait_in_vain(session, "never").first;
      if (status == Errc::shut_down) ++heard;
    });
    CAPTURE(first);
    CHECK(heard == 3);
  }
}

TEST_CASE("what is agreed when a rank shuts down is done first") {
  TestHosts hosts({{0, 1}, {2, 3}});
  std::atomic<int> wrong{0};
  hosts.run([&](Session& session, int) {
    std::vector<std::vector<std::int32_t>> values(40, std::vector<std::int32_t>(500, 1));
    std::vector<Operation*> operations;
    for (std::size_t i = 0; i < values.size(); ++i) {  // Another rank may have gone by now.
      const auto id = session.declare(kWorld, fmt::format("t{}", i),
                                      vector_of(Kind::allreduce, DType::i32, 500));
      if (!id) break;
      const auto operation =
          session.submit(kWorld, *id, {.in = values[i].data(), .out = values[i].data()});
      if (!operation) break;
      operations.push_back(*operation);
    }
    session.shutdown();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (!operations[i]->done()) ++wrong;
      const bool summed = operations[i]->status() == Errc::ok;
      if (summed != (values[i][499] == 4)) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a loss on one host ends what is in flight on all, naming rank, host and cause") {
  for (const int victim : {0, 1, 2, 4}) {
    TestHosts hosts({{0, 1}, {2, 3}, {4}});
    const int host = victim / 2;
    std::atomic<int> ready{0};
    std::atomic<int> told{0};
    hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
      if (!sum(*session, kWorld, "before", 100, 5).empty()) return;
      ++ready;
      if (rank == victim) {
        while (ready != 5) std::this_thread::yield();
        hosts.poison(host, {.rank = Rank{victim}, .cause = LossCause::signalled, .detail = 9});
      } else {
        const auto [status, message] = wait_in_vain(*session, "never");
        const auto wanted =
            fmt::format("rank {} on node{} was lost: killed by signal 9", victim, host);
        if (status == Errc::peer_lost && message.find(wanted) != std::string::npos) ++told;
      }
    });
    CAPTURE(victim);
    CHECK(told == 4);
  }
}

TEST_CASE("where a rank cannot go on, the others are told in place of waiting") {
  TestHosts hosts({{0}, {1}, {2}});
  std::atomic<int> told{0};
  std::atomic<bool> gone{false};
  hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
    if (!sum(*session, kWorld, "before", 100, 3).empty()) return;
    if (rank == 1) {  // Ends without a word, and without an agent: its leader's links close.
      session.reset();
      gone = true;
      return;
    }
    const auto status = wait_in_vain(*session, "never").first;
    if (status == Errc::shut_down || status == Errc::peer_lost) ++told;
  });
  CHECK(told == 2);
}
