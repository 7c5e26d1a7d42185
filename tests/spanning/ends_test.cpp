// SPDX-License-Identifier: Apache-2.0
// How sessions over several hosts end: epoch after epoch, ranks that leave before others, losses.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>

#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

/// Waits for a sum that cannot complete, and returns how it ended.
std::pair<Errc, std::string> wait_in_vain(Session& session, const std::string& name) {
  const auto id = session.declare(kWorld, name, vector_of(Kind::allreduce, DType::f32, 3000));
  if (!id) return {id.error().code, id.error().message};
  std::vector<float> values(3000);
  const auto operation = session.submit(kWorld, *id, {.in = values.data(), .out = values.data()});
  if (!operation) return {operation.error().code, operation.error().message};
  if (!wait_for(session, **operation)) return {Errc::timed_out, "it hangs"};
  return {(*operation)->status(), (*operation)->message()};
}

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Sums until a rank is lost, and checks that nothing writes to the tensors afterwards. Returns ""
/// or what went wrong.
std::string sum_until_lost(Session& session, std::int64_t count) {
  constexpr float kMine = 12345;
  std::vector<std::vector<float>> values(3, std::vector<float>(static_cast<std::size_t>(count), 1));
  for (bool lost = false; !lost;) {
    std::vector<Operation*> operations;
    for (std::size_t i = 0; i < values.size() && !lost; ++i) {
      const auto id = session.declare(kWorld, fmt::format("t{}", i),
                                      vector_of(Kind::allreduce, DType::f32, count));
      if (!id && id.error().code != Errc::peer_lost) return id.error().message;
      lost = !id;
      if (lost) break;
      const auto operation =
          session.submit(kWorld, *id, {.in = values[i].data(), .out = values[i].data()});
      if (!operation && operation.error().code != Errc::peer_lost) return operation.error().message;
      lost = !operation;
      if (!lost) operations.push_back(*operation);
    }
    for (auto* const operation : operations) {
      if (!wait_for(session, *operation)) return "it hangs";
      const auto status = operation->status();
      if (status != Errc::ok && status != Errc::peer_lost) return operation->message();
      lost = lost || status == Errc::peer_lost;
      session.operations().put(*operation);
    }
  }
  for (auto& tensor : values) std::fill(tensor.begin(), tensor.end(), kMine);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const auto& tensor : values) {
    if (std::any_of(tensor.begin(), tensor.end(), [](float v) { return v != kMine; }))
      return "somebody wrote into a tensor that was given back";
  }
  return {};
}

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("many epochs on the same hosts leave no descriptor and no thread behind") {
  TestHosts hosts({{0, 1}, {2}});
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  for (int epoch = 0; epoch < times(12); ++epoch) {
    std::atomic<int> wrong{0};
    hosts.run([&](Session& session, int) {
      if (!sum(session, kWorld, "x", 2000, 3).empty()) ++wrong;
    });
    REQUIRE(wrong == 0);
    if (epoch != 3) continue;
    descriptors = entries_of("/proc/self/fd");
    threads = entries_of("/proc/self/task");
  }
  if (is_one_of_many()) return;
  CHECK(entries_of("/proc/self/fd") <= descriptors + 3);  // The server's side closes on its own.
  CHECK(entries_of("/proc/self/task") <= threads);
}

TEST_CASE("after any rank shuts down, the others' operations end with shut_down") {
  for (const int first : drawn_from(std::vector{0, 1, 2, 3})) {
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

TEST_CASE("operations that are agreed when a rank shuts down complete first") {
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

TEST_CASE("a loss on one host ends the operations of all hosts, naming rank, host and cause") {
  for (const int victim : drawn_from(std::vector{0, 1, 2, 4})) {
    TestHosts hosts({{0, 1}, {2, 3}, {4}});
    const int host = victim / 2;
    std::atomic<int> ready{0};
    std::atomic<int> told{0};
    hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
      if (!sum(*session, kWorld, "before", 100, 5).empty()) return;
      ++ready;
      if (rank == victim) {
        while (ready != 5 && !hosts.failed()) std::this_thread::yield();
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

TEST_CASE("after a loss at any moment no thread touches the tensors any more") {
  // A minute or two by hand: HORO_SPANNING_LOSSES=1000.
  const auto count = is_one_of_many() ? 1 : number_from_environment("HORO_SPANNING_LOSSES", 12);
  const auto first = run_seed();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    TestHosts hosts(random() % 2 == 0 ? Layout{{0, 1}, {2, 3}} : Layout{{0, 1}, {2}, {3}});
    hosts.options.hosts.connect.hierarchical = random() % 4 != 0;
    const auto elements = static_cast<std::int64_t>(1 + random() % (1U << (6 + random() % 14)));
    const auto after = std::chrono::microseconds(random() % 60'000);
    const auto victim = static_cast<int>(random() % 4);
    std::atomic<int> ready{0};
    std::array<std::string, 4> wrong;
    hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
      ++ready;
      std::thread killer;
      if (rank == victim) {
        killer = std::thread([&] {
          while (ready != 4 && !hosts.failed()) std::this_thread::yield();
          std::this_thread::sleep_for(after);
          hosts.poison(static_cast<int>(random() % 2),
                       {.rank = Rank{victim}, .cause = LossCause::signalled, .detail = 9});
        });
      }
      wrong[static_cast<std::size_t>(rank)] = sum_until_lost(*session, elements);
      if (killer.joinable()) killer.join();
    });
    REQUIRE(wrong == std::array<std::string, 4>{});
  }
}

TEST_CASE("when a rank ends without an agent, the others get an error instead of waiting") {
  TestHosts hosts({{0}, {1}, {2}});
  std::atomic<int> told{0};
  std::atomic<bool> gone{false};
  hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
    if (!sum(*session, kWorld, "before", 100, 3).empty()) return;
    if (rank == 1) {  // It ends without an agent that could say so: its leader's connections close.
      session.reset();
      gone = true;
      return;
    }
    const auto status = wait_in_vain(*session, "never").first;
    if (status == Errc::shut_down || status == Errc::peer_lost) ++told;
  });
  CHECK(told == 2);
}
