// SPDX-License-Identifier: Apache-2.0
// The tuner's own thread, and the threads of a rank that hold the progress token in turn.
#include "runtime/tuning/tuner.hpp"

#include <array>
#include <mutex>

#include <catch2/catch.hpp>

using namespace horo;                   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;          // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// The agreement of a set in which every wish is granted, but each second one not at once.
class Granting final : public Agreement {
 public:
  Granting() : Agreement(2, 0) {}

  bool change_tuning(const Tuning& tuning) override {
    refuses_ = !refuses_;
    if (refuses_) return false;
    granted = tuning;
    return true;
  }

  int position_of(Rank rank) const override { return rank.value(); }

  Contribution contribute(TensorId /*id*/, LocalTensor& /*mine*/, const Signature& /*signature*/,
                          const Submission& /*given*/, Operation& /*operation*/) override {
    return {};
  }

  bool join(TensorId /*id*/) override { return false; }

  bool call_leader() override { return false; }

  bool has_news() const override { return false; }

  bool advance() override { return false; }

  void entries_done() override {}

  void moved() override {}

  std::optional<Rank> find_departed(std::uint64_t /*begun*/, bool /*active*/) override {
    return std::nullopt;
  }

  void leave() override {}

  std::optional<Tuning> granted;

 private:
  bool refuses_ = false;
};

/// A rank that trains, whose threads make progress in turn.
class Trainee {
 public:
  explicit Trainee(const TunerOptions& options)
      : tuner_(Tuner::start(options, {.fusion_threshold = 64 << 20}, 2)) {
    REQUIRE(tuner_ != nullptr);
  }

  /// A step of a training with two tensors. Returns how many changes it has had.
  int step() {
    const std::lock_guard token(token_);
    for (const std::uint32_t id : {1U, 2U}) {
      tuner_->finished(std::array{TensorId{id}}, 1 << 20);
      tuner_->advance(agreement_);
      if (!agreement_.granted) continue;
      tuner_->changed(*std::exchange(agreement_.granted, std::nullopt));
      ++changes_;
    }
    if (++steps_ == 100) tuner_->disturbed();
    return changes_;
  }

  Tuner& tuner() { return *tuner_; }

 private:
  std::mutex token_;
  Granting agreement_;
  int steps_ = 0;
  int changes_ = 0;
  const std::unique_ptr<Tuner> tuner_;
};

const TunerOptions kOptions{.on = true,
                            .tunable = {},
                            .steps_per_sample = 3,
                            .course = {.warmup_samples = 1, .most_samples = 6}};

}  // namespace

TEST_CASE("threads that hold the progress token in turn feed the tuner and make its changes") {
  Trainee trainee(kOptions);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&trainee] {
      while (trainee.step() < 3) std::this_thread::yield();
    });
  }
  for (auto& thread : threads) thread.join();
  trainee.tuner().stop();
  // A wish that was on its way when it stopped does no harm.
  CHECK(trainee.step() >= 3);
}

TEST_CASE("a tuner stops at any moment of its search, also while others feed it") {
  for (int after = 0; after < 60; after += 7) {
    Trainee trainee(kOptions);
    std::atomic<bool> ends{false};
    std::thread feeder([&] {
      while (!ends) trainee.step();
    });
    for (int i = 0; i < after; ++i) trainee.step();
    trainee.tuner().stop();
    trainee.tuner().stop();
    ends = true;
    feeder.join();
  }
  SUCCEED();
}
