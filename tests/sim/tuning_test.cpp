// SPDX-License-Identifier: Apache-2.0
// Ranks change their tuning between the same two entries of the log.
#include <catch2/catch.hpp>

#include "tests/sim/sim_job.hpp"

using namespace horo::sim;
using horo::Errc;
using horo::runtime::Agreement;
using horo::runtime::DType;
using horo::runtime::EntryKind;
using horo::runtime::EntryObserver;
using horo::runtime::Kind;
using horo::runtime::Tuning;

namespace {

constexpr int kTensors = 60;
constexpr std::uint64_t kNotYet = ~std::uint64_t{0};

/// A job in which a rank changes the tuning at some step, and what its log says.
class TunedJob {
 public:
  TunedJob(int ranks, std::uint64_t seed, const Tuning& before, const Tuning& after)
      : job_(ranks, seed, params_with(before)), before_(before), after_(after) {
    const auto signature = vector_of(Kind::allreduce, DType::f32, 2000);
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < kTensors; ++i) job_.add(r, "t" + std::to_string(i), signature, false);
    }
  }

  void run(std::uint64_t change_at) {
    for (std::uint64_t step = 0; step < 200'000 && !job_.run(0); ++step) {
      if (changed_at_ == kNotYet && step >= change_at) change();
      job_.step();
      read_log();
      check_ranks();
    }
    REQUIRE(job_.run(0));
    if (changed_at_ == kNotYet) {
      change();
      REQUIRE(job_.run(10'000));
    }
  }

  /// Tensors of each entry before or after the change.
  std::vector<std::size_t> before_change;
  std::vector<std::size_t> after_change;

 private:
  static horo::runtime::BoardParams params_with(const Tuning& tuning) {
    auto params = tight_params();
    params.tuning = tuning;
    return params;
  }

  void change() {
    auto& board = job_.board(0);
    const auto published = board.log().published();
    if (board.cutter()->change_tuning(after_, 0)) changed_at_ = published;
  }

  void read_log() {
    const auto& log = job_.board(0).log();
    for (; read_ < log.published(); ++read_) {
      const auto entry = log.read(read_, words_).value().value();
      REQUIRE((entry.kind == EntryKind::tuning) == (read_ == changed_at_));
      if (entry.kind == EntryKind::tuning) {
        CHECK(entry.tuning == after_);
      } else {
        (read_ < changed_at_ ? before_change : after_change).push_back(entry.ids.size());
      }
    }
  }

  void check_ranks() {
    for (int r = 0; r < job_.ranks(); ++r) {
      auto& board = job_.board(r);
      const auto done = board.region().area(r).cursor.load();
      const auto now = board.tuning().value();
      if (changed_at_ == kNotYet) REQUIRE(now == before_);
      if (changed_at_ != kNotYet && done > changed_at_) REQUIRE(now == after_);
    }
  }

  SimJob job_;
  const Tuning before_;
  const Tuning after_;
  std::uint64_t changed_at_ = kNotYet;
  std::uint64_t read_ = 0;
  horo::runtime::EntryWords words_;
};

/// Asks for another tuning once some entries are done, and notes what it is told.
class Asker final : public EntryObserver {
 public:
  Asker(std::uint64_t after, const Tuning& wanted) : after_(after), wanted_(wanted) {}

  void finished(std::span<const horo::TensorId> ids, std::uint64_t /*bytes*/) override {
    tensors += ids.size();
    ++entries;
  }

  void changed(const Tuning& tuning) override {
    CHECK(tuning == wanted_);
    ++changes;
  }

  void disturbed() override { ++disturbances; }

  bool advance(Agreement& agreement) override {
    if (asked_ || entries < after_) return false;
    asked_ = agreement.change_tuning(wanted_);
    return asked_;
  }

  std::size_t tensors = 0;
  std::uint64_t entries = 0;
  int changes = 0;
  int disturbances = 0;

 private:
  const std::uint64_t after_;
  const Tuning wanted_;
  bool asked_ = false;
};

}  // namespace

TEST_CASE("an engine's observer sees every entry, and its wish reaches all ranks") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const int ranks = 1 + static_cast<int>(seed % 4);
    SimJob job(ranks, seed, tight_params());
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < kTensors; ++i)
        job.add(r, "t" + std::to_string(i), vector_of(Kind::allreduce, DType::f32, 2000), false);
    }
    const Tuning wanted{.fusion_threshold = 0, .cycle_ns = 0, .wake_delay_ns = 7};
    Asker asker(seed % 3, wanted);
    job.engine(0).observe(&asker);
    REQUIRE(job.run(400'000));
    for (int i = 0; i < 1000; ++i) job.step();
    CHECK(asker.tensors == kTensors);
    CHECK(asker.changes == 1);
    CHECK(asker.disturbances == 0);
    for (int r = 0; r < ranks; ++r) CHECK(job.board(r).tuning().value() == wanted);
    job.engine(0).observe(nullptr);
  }
}

TEST_CASE("a rank that leaves before a change of the tuning has no share in it that is lost") {
  auto params = tight_params();
  params.ring_slots = 8;
  SimJob job(2, 1, params);
  for (int r = 0; r < 2; ++r) job.add(r, "x", vector_of(Kind::allreduce, DType::f32, 9000), false);
  job.submit_all();
  const auto done = [&job](int rank) { return job.buffers(rank)[0]->operation->done(); };
  // Both put all they have into the rings; then rank 1 takes all results, and rank 0 takes none.
  while (job.sets(1).progress()) {
  }
  while (job.sets(0).progress()) {
  }
  while (!done(1)) job.sets(1).progress();
  REQUIRE_FALSE(done(0));
  REQUIRE(job.board(0).cutter()->change_tuning({.fusion_threshold = 0}, 0));
  job.host(1).slot(job.host(1).me()).state.store(horo::RankState::detached);
  job.host(1).body().gone.fetch_add(1);
  job.sets(0).progress();
  REQUIRE_FALSE(done(0));
  CHECK(job.board(0).tuning().value().fusion_threshold == 0);
  while (!done(0)) job.sets(0).progress();
  CHECK(job.buffers(0)[0]->operation->status() == Errc::ok);
  CHECK_FALSE(job.sets(0).loss().is_poisoned());
}

TEST_CASE("no entry after a change of the tuning is made with the old fusion threshold") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    TunedJob job(1 + static_cast<int>(seed % 4), seed, {.fusion_threshold = 64 << 10},
                 {.fusion_threshold = 0, .wake_delay_ns = 7});
    job.run(20 * seed);
    for (const auto tensors : job.after_change) CHECK(tensors == 1);
  }
}

TEST_CASE("tensors fuse once a change of the tuning allows it, and not before") {
  std::size_t fused = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    TunedJob job(1 + static_cast<int>(seed % 4), seed, {.fusion_threshold = 0},
                 {.fusion_threshold = 64 << 10});
    job.run(5 * seed);
    for (const auto tensors : job.before_change) CHECK(tensors == 1);
    for (const auto tensors : job.after_change) fused += tensors > 1 ? 1 : 0;
  }
  CHECK(fused != 0);
}
