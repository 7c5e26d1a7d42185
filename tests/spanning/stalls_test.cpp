// SPDX-License-Identifier: Apache-2.0
// Ranks that keep other hosts waiting: all ranks get an error that names the rank, its host and
// why.
#include <chrono>
#include <mutex>
#include <set>

#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;         // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;        // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals
using horo::sim::vector_of;

namespace {

/// The errors of ranks that wait for "x" of `set` while the `lazy` ranks submit nothing.
std::set<std::string> heard_without(const Layout& layout, const std::set<int>& lazy) {
  TestHosts hosts(layout);
  hosts.options.stalls = {.warning = 200ms, .shutdown = 600ms};
  std::mutex mutex;
  std::set<std::string> heard;
  std::atomic<int> waiting{hosts.size() - static_cast<int>(lazy.size())};
  hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
    auto said = sum(*session, kWorld, "before", 100, hosts.size());
    if (lazy.contains(rank)) {
      while (waiting != 0) std::this_thread::sleep_for(10ms);
    } else {
      if (said.empty()) said = sum(*session, kWorld, "x", 100, hosts.size());
      --waiting;
      const std::lock_guard lock(mutex);
      heard.insert(said);
    }
  });
  return heard;
}

/// The case waits for time limits, which takes long and is not for a machine that is busy: few of
/// many runs have it.
bool is_left_out() {
  return is_one_of_many() && run_seed() % 32 != 0;
}

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a rank that keeps other hosts waiting is named on all of them") {
  if (is_left_out()) return;
  // Alone on its host, beside a rank that waits too, far down the tree, and on the root's host.
  const Layout layout{{0}, {1, 2}, {3}, {4}, {5}, {6}};
  for (const auto& [lazy, host] :
       drawn_from(std::vector<std::pair<int, int>>{{3, 2}, {2, 1}, {6, 5}, {0, 0}})) {
    const auto heard = heard_without(layout, {lazy});
    CAPTURE(lazy);
    REQUIRE(heard.size() == 1);
    CHECK(says(*heard.begin(),
               "stalled for longer than the 0.6 s of stall.shutdown.time: tensor "
               "'x' has waited "));
    CHECK(says(*heard.begin(), fmt::format("for rank {} on node{} (", lazy, host)));
    CHECK(says(*heard.begin(), "outside libhoro"));
    CHECK(says(*heard.begin(), "; never declared it)"));
  }
}

TEST_CASE("all ranks that others wait for are named in one report") {
  if (is_left_out()) return;
  const auto heard = heard_without({{0, 1}, {2, 3}, {4}}, {1, 2, 3});
  REQUIRE(heard.size() == 1);
  CHECK(says(*heard.begin(), "for rank 1 on node0 ("));
  CHECK(says(*heard.begin(), ", rank 2 on node1 ("));
  CHECK(says(*heard.begin(), ", rank 3 on node1 ("));
}

TEST_CASE("ranks of different hosts that wait for each other's tensors get both names") {
  if (is_left_out()) return;
  TestHosts hosts({{0}, {1}});
  hosts.options.stalls = {.warning = 200ms, .shutdown = 600ms};
  std::mutex mutex;
  std::string heard;
  hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
    const auto said = sum(*session, kWorld, rank == 0 ? "x" : "y", 100, 2);
    const std::lock_guard lock(mutex);
    heard = said;
  });
  const bool x = says(heard, "'x' has waited 0.6 s for rank 1 on node1 (waits for tensor 'y'");
  const bool y = says(heard, "'y' has waited 0.6 s for rank 0 on node0 (waits for tensor 'x'");
  CHECK((x || y));
}

TEST_CASE("an operation that waits for its turn, or moves slowly, is no stall") {
  const std::int64_t elements = is_one_of_many() ? 4 << 10 : 4 << 20;
  TestHosts hosts({{0, 1}, {2}});
  hosts.options.stalls = {.warning = 500ms, .shutdown = is_one_of_many() ? patience() : 1s};
  hosts.options.board.tuning.fusion_threshold = 0;
  std::atomic<int> wrong{0};
  hosts.run([&](Session& session, int) {
    // Zeros stay zeros, whichever sums run in the one buffer.
    std::vector<float> zeros(elements);
    std::vector<Operation*> operations;
    if (!sum(session, kWorld, "before", 100, 3).empty()) ++wrong;
    for (int i = 0; i < times(60, 10); ++i) {
      const auto id = session.declare(kWorld, fmt::format("t{}", i),
                                      vector_of(Kind::allreduce, DType::f32, elements));
      const auto operation =
          id ? session.submit(kWorld, *id, {.in = zeros.data(), .out = zeros.data()})
             : Failure(id.error());
      if (!operation) {
        ++wrong;
        return;
      }
      operations.push_back(*operation);
    }
    for (auto* const operation : operations) {
      if (!wait_for(session, *operation) || operation->status() != Errc::ok) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("ranks that submit late, but before the shutdown time, end no operation") {
  TestHosts hosts({{0, 1}, {2}, {3}});
  hosts.options.stalls = {.warning = 50ms, .shutdown = is_one_of_many() ? patience() : 5s};
  std::atomic<int> wrong{0};
  hosts.run([&](Session& session, int rank) {
    for (int step = 0; step < times(6); ++step) {
      if (rank == step % 4) std::this_thread::sleep_for(120ms);
      if (!sum(session, kWorld, "x", 500, 4).empty()) ++wrong;
    }
  });
  CHECK(wrong == 0);
}
