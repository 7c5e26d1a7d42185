// SPDX-License-Identifier: Apache-2.0
// Process sets on one host and on several, with and without the first rank of a host: joins,
// groups, disagreements and removals.
#include <algorithm>
#include <numeric>
#include <random>

#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

std::vector<Rank> ranks_of(const std::vector<int>& numbers) {
  return {numbers.begin(), numbers.end()};
}

bool holds(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// The numbers below `count` in an order of the seed.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// The failures of all ranks.
class Report {
 public:
  void add(int rank, const std::string& text) {
    if (text.empty()) return;
    const std::lock_guard lock(mutex_);
    text_ += fmt::format("rank {}: {}\n", rank, text);
  }

  std::string text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

struct InFlight {
  std::vector<std::int32_t> values;
  Operation* operation = nullptr;
};

InFlight submit_ones(Session& session, SetId set, const std::string& name, GroupName group = {},
                     DType dtype = DType::i32) {
  InFlight flight{.values = std::vector<std::int32_t>(100, 1)};
  const auto id = session.declare(set, name, vector_of(Kind::allreduce, dtype, 100), group);
  if (!id) return flight;
  const auto operation =
      session.submit(set, *id, {.in = flight.values.data(), .out = flight.values.data()});
  if (operation) flight.operation = *operation;
  return flight;
}

}  // namespace

TEST_CASE(
    "process sets are added and removed on one host and several, with and without leaders as "
    "members") {
  TestHosts hosts({{0, 1}, {2, 3}, {4}});
  const std::vector<std::vector<int>> sets = {{0, 2, 4}, {1, 3}, {0, 1}, {1, 2, 3}, {3, 4}};
  const auto seed = run_seed();
  CAPTURE(seed);
  Report report;
  hosts.run([&](Session& session, int rank) {
    for (int round = 0; round < times(4); ++round) {
      std::vector<SetId> ids;
      for (const auto& ranks : sets) {
        const auto id = session.add_set(ranks_of(ranks));
        if (!id) return report.add(rank, id.error().message);
        ids.push_back(*id);
      }
      // Each rank goes through its sets in an order of its own.
      const auto order =
          shuffled(sets.size(), seed + static_cast<std::uint64_t>(rank + 10 * round));
      std::vector<std::pair<std::size_t, InFlight>> flights;
      for (const auto s : order) {
        if (holds(sets[s], rank)) flights.emplace_back(s, submit_ones(session, ids[s], "x"));
      }
      for (auto& [s, flight] : flights) {
        if (flight.operation == nullptr || !wait_for(session, *flight.operation))
          return report.add(rank, "it hangs");
        report.add(rank, flight.operation->message());
        if (flight.values[99] != static_cast<int>(sets[s].size()))
          report.add(rank, fmt::format("set {} sums to {}", s, flight.values[99]));
        session.operations().put(*flight.operation);
      }
      report.add(rank, sum(session, kWorld, "world", 5000, 5));
      for (const auto id : ids) {
        if (const auto removed = session.remove_set(id); !removed)
          report.add(rank, removed.error().message);
      }
    }
  });
  CHECK(report.text() == "");
}

TEST_CASE("a set makes progress while the ranks outside it wait") {
  TestHosts hosts({{0, 1}, {2, 3}});
  Report report;
  hosts.run([&](Session& session, int rank) {
    const auto id = session.add_set(ranks_of({1, 3}));
    if (!id) return report.add(rank, id.error().message);
    for (int i = 0; i < times(50, 6) && rank % 2 == 1; ++i)
      report.add(rank, sum(session, *id, fmt::format("inner{}", i % 3), 700, 2));
    report.add(rank, sum(session, kWorld, "all", 700, 4));
  });
  CHECK(report.text() == "");
}

TEST_CASE(
    "joined ranks take part with neutral elements, and all ranks learn which one joined last") {
  TestHosts hosts({{0, 1}, {2}, {3}});
  Report report;
  hosts.run([&](Session& session, int rank) {
    for (int round = 0; round < times(3); ++round) {
      // Rank r has r batches: ranks with more batches sum with ranks that have as many.
      for (int batch = 0; batch < rank; ++batch)
        report.add(rank, sum(session, kWorld, fmt::format("batch{}", batch), 300, 3 - batch));
      const auto id = session.declare(kWorld, "join", vector_of(Kind::join, DType::u8, 0));
      const auto operation = session.submit(kWorld, *id, {});
      if (!operation || !wait_for(session, **operation)) return report.add(rank, "no join");
      if (*static_cast<const std::int32_t*>((*operation)->result) != 3)
        report.add(rank, "another rank was last");
      session.operations().put(**operation);
    }
  });
  CHECK(report.text() == "");
}

TEST_CASE("a tensor changes its signature while all ranks of a host have joined") {
  TestHosts hosts({{0}, {1}});
  Report report;
  hosts.run([&](Session& session, int rank) {
    report.add(rank, sum(session, kWorld, "x", 100, 2));
    if (rank == 0) {
      report.add(rank, sum(session, kWorld, "x", 5000, 1));
      report.add(rank, sum(session, kWorld, "x", 5, 1));
      report.add(rank, sum(session, kWorld, "y", 50, 1));
    }
    const auto id = session.declare(kWorld, "join", vector_of(Kind::join, DType::u8, 0));
    const auto operation = session.submit(kWorld, *id, {});
    if (!operation || !wait_for(session, **operation)) return report.add(rank, "no join");
    session.operations().put(**operation);
    report.add(rank, sum(session, kWorld, "x", 200, 2));
  });
  CHECK(report.text() == "");
}

TEST_CASE("repeated joins with thousands of names do not exhaust the directory") {
  TestHosts hosts({{0, 1}, {2}});
  hosts.options.board.capacity = 2048;
  Report report;
  hosts.run([&](Session& session, int rank) {
    for (int i = 0; i < times(1500, 500); ++i) {
      const auto id = session.declare(kWorld, fmt::format("name{}", i),
                                      vector_of(Kind::allreduce, DType::i32, 1));
      if (!id) return report.add(rank, id.error().message);
    }
    for (int round = 0; round < times(40, 4); ++round) {
      const auto id = session.declare(kWorld, "join", vector_of(Kind::join, DType::u8, 0));
      const auto operation = session.submit(kWorld, *id, {});
      if (!operation || !wait_for(session, **operation)) return report.add(rank, "no join");
      if ((*operation)->status() != Errc::ok) return report.add(rank, (*operation)->message());
      session.operations().put(**operation);
    }
    report.add(rank, sum(session, kWorld, "after", 10, 3));
  });
  CHECK(report.text() == "");
}

TEST_CASE("tensors of a group run together, or not at all if ranks disagree about it") {
  TestHosts hosts({{0, 1}, {2, 3}});
  Report report;
  hosts.run([&](Session& session, int rank) {
    for (int round = 0; round < times(10, 2); ++round) {
      std::vector<InFlight> flights;
      for (int t = 0; t < 4; ++t) {
        // Ranks submit in opposite orders.
        const int number = rank % 2 == 0 ? t : 3 - t;
        flights.push_back(submit_ones(session, kWorld, fmt::format("g{}", number), {"group", 4}));
      }
      for (auto& flight : flights) {
        if (flight.operation == nullptr || !wait_for(session, *flight.operation))
          return report.add(rank, "it hangs");
        if (flight.operation->status() != Errc::ok || flight.values[0] != 4)
          report.add(rank, flight.operation->message());
        session.operations().put(*flight.operation);
      }
    }
  });
  CHECK(report.text() == "");
}

TEST_CASE("an operation about which hosts disagree ends with an error that names both sides") {
  TestHosts hosts({{0, 1}, {2}});
  std::vector<std::string> messages(3);
  Report report;
  hosts.run([&](Session& session, int rank) {
    auto flight = submit_ones(session, kWorld, "x", {}, rank == 2 ? DType::f32 : DType::i32);
    if (flight.operation == nullptr || !wait_for(session, *flight.operation))
      return report.add(rank, "it hangs");
    if (flight.operation->status() != Errc::mismatch) report.add(rank, "no mismatch");
    messages[static_cast<std::size_t>(rank)] = flight.operation->message();
    session.operations().put(*flight.operation);
    report.add(rank, sum(session, kWorld, "after", 10, 3));
  });
  CHECK(report.text() == "");
  for (const auto& message : messages) {
    CAPTURE(message);
    CHECK(message.find("int32 on ranks 0, 1") != std::string::npos);
    CHECK(message.find("float32 on rank 2") != std::string::npos);
  }
}
