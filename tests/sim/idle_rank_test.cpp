// SPDX-License-Identifier: Apache-2.0
// Ranks whose threads all sleep or compute: peers do not wake them for small sums, and nobody waits
// for ever because of that.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/simulator/delays.hpp"
#include "tests/sim/sessions.hpp"

using horo::Deadline;
using horo::LocalRank;
using horo::SteadyClock;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::sim::kLongEnough;
using horo::sim::run_sessions;
using horo::sim::vector_of;
using horo::sim::wait_for;

namespace {

constexpr std::int64_t kSmall = 4;        // Elements of a payload that lies beside its mark ...
constexpr std::int64_t kLarge = 100'000;  // ... and of one for which all ranks are needed.

/// More than the log takes.
constexpr int kMany = 6;

/// False when `condition` does not come true.
template <typename Condition>
bool comes_true(Condition condition) {
  const auto limit = Deadline::in(SteadyClock::instance(), kLongEnough / 2);
  while (!condition()) {
    if (limit.expired(SteadyClock::instance().now())) return false;
    std::this_thread::yield();
  }
  return true;
}

horo::runtime::HostMemory& host_of(Session& session) {
  return session.sets().find(kWorld)->board->region().host();
}

/// No thread of the rank makes progress.
bool is_idle(Session& session, int rank) {
  return host_of(session).waker().is_undriven(LocalRank{rank});
}

/// How often the rank has been rung.
std::uint32_t rings_of(Session& session, int rank) {
  return host_of(session).slot(LocalRank{rank}).bell.rings.load();
}

/// Catch2 counts on one thread only. What the ranks' threads expect is counted here.
class Expectations {
 public:
  ~Expectations() { CHECK(failed_ == 0); }

  void operator()(bool holds) { failed_ += holds ? 0 : 1; }

 private:
  std::atomic<int> failed_{0};
};

/// One rank's tensors t0, t1, ..., which it sums over all ranks.
class Sums {
 public:
  Sums(Session& session, int count, std::int64_t elements = kSmall) : session_(session) {
    for (int i = 0; i < count; ++i) {
      handles_.push_back(*session.declare(kWorld, "t" + std::to_string(i),
                                          vector_of(Kind::allreduce, DType::f32, elements)));
      values_.emplace_back(static_cast<std::size_t>(elements));
    }
  }

  /// The results are written to memory of this.
  ~Sums() { session_.wait(operations_, Deadline::in(SteadyClock::instance(), kLongEnough / 2)); }

  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  Operation& submit(std::size_t i) {
    auto& values = values_[i];
    std::fill(values.begin(), values.end(), 1.0F);
    operations_.push_back(
        *session_.submit(kWorld, handles_[i], {.in = values.data(), .out = values.data()}));
    return *operations_.back();
  }

  const std::vector<Operation*>& submit_all() {
    for (std::size_t i = 0; i < handles_.size(); ++i) submit(i);
    return operations_;
  }

  /// Gives the operations back, which are done.
  void end() {
    for (auto* const operation : operations_) session_.operations().put(*operation);
    operations_.clear();
  }

  bool is_sum(std::size_t i, int ranks) const {
    return values_[i].back() == static_cast<float>(ranks);
  }

 private:
  Session& session_;
  std::vector<horo::runtime::TensorHandle> handles_;
  std::vector<std::vector<float>> values_;
  std::vector<Operation*> operations_;  ///< Submitted and not given back.
};

void count_call(void* user, horo_op /*op*/, horo_status /*status*/) {
  static_cast<std::atomic<int>*>(user)->fetch_add(1);
}

/// Waits without time; false when an operation is not done.
bool wait_briefly(Session& session, const std::vector<Operation*>& operations) {
  return session.wait(operations,
                      Deadline::in(SteadyClock::instance(), std::chrono::nanoseconds(0)));
}

/// Ranks on threads, which close their session's board at the end.
template <typename Body>
void run_ranks(int ranks, Body body) {
  close(run_sessions(ranks, body));
}

}  // namespace

TEST_CASE("a rank that computes is not woken for small sums, and does its share of large ones") {
  Expectations expect;
  std::atomic<bool> computes{false};
  std::atomic<bool> summed{false};
  std::uint32_t rung = 1;
  for (const auto elements : {kLarge, kSmall}) {
    computes = summed = false;
    run_ranks(2, [&](Session& session, int rank) {
      Sums sums(session, 1, elements);
      if (rank == 0) {
        while (!computes) std::this_thread::yield();
        const auto before = rings_of(session, 1);
        expect(wait_for(session, sums.submit(0)));
        rung = rings_of(session, 1) - before;
        summed = true;
        return;
      }
      auto& operation = sums.submit(0);
      expect(comes_true([&] { return is_idle(session, 1); }));
      computes = true;
      expect(comes_true([&] { return summed.load(); }));
      expect(wait_for(session, operation));
      expect(sums.is_sum(0, 2));
    });
  }
  CHECK(rung == 0);
}

TEST_CASE("a callback runs on a rank whose threads all sleep") {
  Expectations expect;
  std::atomic<bool> sleeps{false};
  std::atomic<int> calls{0};
  std::atomic<bool> called{false};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, 1);
    if (rank == 0) {
      while (!sleeps) std::this_thread::yield();
      expect(wait_for(session, sums.submit(0)));
      called = comes_true([&] { return calls == 1; });
      sleeps = false;
      sleeps.notify_all();
      return;
    }
    expect(session.on_complete(sums.submit(0), count_call, &calls).has_value());
    expect(comes_true([&] { return is_idle(session, 1); }));
    sleeps = true;
    sleeps.wait(true);
  });
  CHECK(called);
}

TEST_CASE("a caller that sleeps without a driver gets its small sum") {
  Expectations expect;

  // A rank has three callers, and the first of them drives. The third one is the next to get the
  // token. When its own sum is done, no caller is.
  enum : std::size_t { kDrivers, kSleepers, kLatecomers };

  std::atomic<int> stage{0};
  std::atomic<bool> got{false};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, 3);
    if (rank == 0) {
      while (stage == 0) std::this_thread::yield();
      expect(wait_for(session, sums.submit(kLatecomers)));
      expect(wait_for(session, sums.submit(kDrivers)));
      while (stage == 1) std::this_thread::yield();
      expect(wait_for(session, sums.submit(kSleepers)));
      expect(comes_true([&] { return got.load(); }));
      return;
    }
    const auto operations = sums.submit_all();
    std::vector<std::thread> callers;
    const auto wait_asleep = [&](std::size_t i, const std::function<void()>& then) {
      const auto before = session.counters().sleeps;
      callers.emplace_back([&, i, then] {
        expect(wait_for(session, *operations[i]));
        then();
      });
      expect(comes_true([&] { return session.counters().sleeps != before; }));
    };
    std::atomic<bool> driver_ended{false};
    wait_asleep(kDrivers, [&] { driver_ended = true; });
    wait_asleep(kSleepers, [&] { got = true; });
    wait_asleep(kLatecomers, [] {});
    stage = 1;
    expect(comes_true([&] { return driver_ended && is_idle(session, 1); }));
    stage = 2;
    for (auto& caller : callers) caller.join();
  });
}

TEST_CASE("a caller that sleeps gets small sums that find the log full because of an idle rank") {
  Expectations expect;
  std::atomic<Session*> sleeper{nullptr};
  std::atomic<bool> got{false};
  std::atomic<bool> read{false};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, kMany);
    if (rank == 0) {
      const auto operations = sums.submit_all();
      sleeper = &session;
      got = wait_for(session, *operations.back());
      while (!read) std::this_thread::yield();
      return;
    }
    while (sleeper == nullptr) std::this_thread::yield();
    // The other rank sleeps again after each sum.
    auto slept = std::uint64_t{0};
    for (std::size_t i = 0; i < kMany; ++i) {
      expect(comes_true([&] { return sleeper.load()->counters().sleeps > slept; }));
      slept = sleeper.load()->counters().sleeps;
      sums.submit(i);
    }
    expect(comes_true([&] { return got.load(); }));
    read = true;
  });
}

TEST_CASE("callbacks run for small sums that find the log full because of an idle rank") {
  Expectations expect;
  std::atomic<bool> waits{false};
  std::atomic<int> calls{0};
  std::atomic<int> called{0};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, kMany);
    if (rank == 0) {
      for (auto* const operation : sums.submit_all())
        expect(session.on_complete(*operation, count_call, &calls).has_value());
      waits = true;
      waits.wait(true);
      return;
    }
    while (!waits) std::this_thread::yield();
    for (std::size_t i = 0; i < kMany; ++i) {
      expect(comes_true([&] { return is_idle(session, 0); }));
      sums.submit(i);
      if (!comes_true([&] { return calls == static_cast<int>(i) + 1; })) break;
    }
    called = calls.load();
    waits = false;
    waits.notify_all();
  });
  CHECK(called == kMany);
}

TEST_CASE("a callback for a small sum that finds the log full already runs") {
  Expectations expect;
  constexpr std::size_t kFull = 2;  // Entries.
  std::atomic<std::size_t> submitted{0};
  std::atomic<std::size_t> got{0};
  std::atomic<int> calls{0};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, kFull + 1);
    if (rank == 0) {
      const auto operations = sums.submit_all();
      for (std::size_t i = 0; i < kFull; ++i) {
        expect(comes_true([&] { return submitted > i; }));
        expect(wait_for(session, *operations[i]));
        ++got;
      }
      expect(comes_true([&] { return submitted > kFull && is_idle(session, 0); }));
      expect(session.on_complete(*operations.back(), count_call, &calls).has_value());
      expect(comes_true([&] { return calls == 1; }));
      ++got;
      return;
    }
    for (std::size_t i = 0; i <= kFull; ++i) {
      expect(comes_true([&] { return got == i && is_idle(session, 1); }));
      sums.submit(i);
      ++submitted;
    }
    expect(comes_true([&] { return got > kFull; }));
  });
}

TEST_CASE("a rank is needed for shares of entries and for room that a ready tensor waits for") {
  horo::sim::SimJob job(2, 1, horo::sim::tight_params());
  const auto& sets = job.sets(1);
  const auto sum = [&](const char* name, std::int64_t elements) {
    for (int r = 0; r < 2; ++r) {
      job.add(r, name, vector_of(Kind::allreduce, DType::f32, elements), false);
      REQUIRE(job.submit_next_of(r));
    }
    while (job.sets(0).progress()) {
    }
  };
  for (const auto* const name : {"a", "b"}) {
    sum(name, kSmall);
    CHECK(sets.has_news());
    CHECK_FALSE(sets.is_needed());
  }
  REQUIRE_FALSE(job.board(1).log().has_room());
  sum("c", kSmall);
  CHECK(sets.is_needed());
  while (job.sets(1).progress()) {
  }
  CHECK_FALSE(sets.is_needed());
  sum("d", kLarge);
  CHECK(sets.is_needed());
  CHECK(job.run(1'000'000));
}

TEST_CASE("a rank that never sleeps gets small sums although an idle rank keeps the log full") {
  Expectations expect;
  const bool polls = GENERATE(true, false);
  std::atomic<int> submitted{0};
  std::atomic<int> got{0};
  run_ranks(2, [&](Session& session, int rank) {
    Sums sums(session, kMany);
    if (rank == 0) {
      for (auto* const operation : sums.submit_all()) {
        expect(comes_true([&] { return submitted > got; }));
        expect(comes_true([&] {
          if (polls) session.poke();
          return polls ? operation->done() : wait_briefly(session, {operation});
        }));
        ++got;
      }
      return;
    }
    for (std::size_t i = 0; i < kMany; ++i) {
      expect(comes_true([&] { return got == static_cast<int>(i) && is_idle(session, 1); }));
      sums.submit(i);
      ++submitted;
    }
    expect(comes_true([&] { return got == kMany; }));
  });
}

namespace {

/// Says how a rank gets its sums in a round.
enum class Way : std::uint8_t {
  waits,
  polls,
  waits_briefly,        ///< Again and again.
  is_called,            ///< By callbacks.
  waits_and_is_called,  ///< A thread waits for half of the sums, the others call back.
  computes,
};

bool is_called_for(Session& session, const std::vector<Operation*>& operations,
                   std::atomic<int>& calls) {
  calls = 0;
  for (auto* const operation : operations) {
    if (!session.on_complete(*operation, count_call, &calls)) return false;
  }
  return comes_true([&] { return calls == static_cast<int>(operations.size()); });
}

/// Gets the sums in this way; false when it hangs. A rank that computes comes back when `done`.
/// `calls` counts the callbacks.
bool get_by(Way way, Session& session, const std::vector<Operation*>& operations,
            std::atomic<int>& calls, const std::function<bool()>& done) {
  const auto all_done = [&] {
    return std::all_of(operations.begin(), operations.end(),
                       [](const Operation* operation) { return operation->done(); });
  };
  switch (way) {
    case Way::waits:
      break;
    case Way::polls:
      return comes_true([&] {
        session.poke();
        return all_done();
      });
    case Way::waits_briefly:
      return comes_true([&] { return wait_briefly(session, operations); });
    case Way::is_called:
      return is_called_for(session, operations, calls);
    case Way::waits_and_is_called: {
      const auto half = operations.begin() + static_cast<std::ptrdiff_t>(operations.size() / 2);
      std::atomic<bool> got{false};
      std::thread waiter([&, waited = std::vector<Operation*>(operations.begin(), half)] {
        got = session.wait(waited, Deadline::in(SteadyClock::instance(), kLongEnough / 2));
      });
      const bool called = is_called_for(session, {half, operations.end()}, calls);
      waiter.join();
      return called && got;
    }
    case Way::computes:
      if (!comes_true(done)) return false;
      break;
  }
  return session.wait(operations, Deadline::in(SteadyClock::instance(), kLongEnough / 2));
}

}  // namespace

TEST_CASE("ranks get their sums whichever of them wait, poll, compute or are called") {
  Expectations expect;
  constexpr int kRanks = 3;
  constexpr int kRounds = 200;
  const horo::test::RandomDelays delays(horo::test::delays_from_environment());
  std::array<std::atomic<int>, kRanks> rounds{};
  std::array<std::atomic<int>, kRanks> calls{};
  std::atomic<bool> hangs{false};
  run_ranks(kRanks, [&](Session& session, int rank) {
    Sums sums(session, kMany);
    const auto mine = static_cast<std::size_t>(rank);
    for (int round = 0; round < kRounds && !hangs; ++round) {
      // In each round one rank computes until the others have their sums. A rank that has used a
      // callback is woken for every entry from then on.
      const bool computes = round % kRanks == rank;
      const int ways = rank == kRanks - 1 ? 5 : 3;
      const auto way = computes ? Way::computes : static_cast<Way>((round / 7 + rank) % ways);
      const auto others_done = [&] {
        for (std::size_t r = 0; r < kRanks; ++r) {
          if (r != mine && rounds[r] <= round) return false;
        }
        return true;
      };
      if (!get_by(way, session, sums.submit_all(), calls[mine], others_done)) hangs = true;
      ++rounds[mine];
      if (hangs) return;
      for (std::size_t i = 0; i < kMany; ++i) expect(sums.is_sum(i, kRanks));
      sums.end();
    }
  });
  CHECK(!hangs);
}
