// SPDX-License-Identifier: Apache-2.0
#include "planted.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "timeline/input/clock_estimator.hpp"
#include "timeline/input/entry_matcher.hpp"

namespace horo::testing {

using timeline::Record;
using timeline::RecordKind;

namespace {

constexpr double kMs = 1e6;
constexpr double kUs = 1e3;
constexpr double kMiB = 1 << 20;
constexpr double kFused = 64 * kMiB;
constexpr double kNearlyNow = 5 * kUs;  ///< Delay until one rank sees what another rank did.

/// The parameters of a training, in nanoseconds, bytes, and bytes per nanosecond.
struct Model {
  int ranks = 2;
  int hosts = 1;
  int steps = 20;
  double compute = 0;  ///< Computing time of a step, on a rank that is not late.
  double noise = 0.02;
  std::vector<double> tensors;  ///< Bytes, in the order in which gradients become ready.
  double latency = 20 * kUs;    ///< Fixed cost of an operation.
  double link = 10;
  double packing = 20;
  bool waits_at_once = false;  ///< Wait after each tensor; otherwise once, at the end of the step.
  int late = -1;
  double late_by = 0;  ///< The late rank's delay, as a share of a step.
};

/// Random parameters. The same seed gives the same values.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  double between(double least, double most) {
    return std::uniform_real_distribution(least, most)(engine_);
  }

  /// Uniform on a logarithmic scale: 1 to 2 is as likely as 10 to 20.
  double scaled(double least, double most) {
    return std::exp(between(std::log(least), std::log(most)));
  }

  int pick(int least, int most) { return std::uniform_int_distribution(least, most)(engine_); }

  double noisy(double share) {
    return std::max(0.2, std::normal_distribution(1.0, share)(engine_));
  }

 private:
  std::mt19937_64 engine_;
};

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const auto value : values) total += value;
  return total;
}

double crossing(const Model& m) {
  return 2.0 * (m.ranks - 1) / m.ranks;
}

/// The time of all operations of a step, if the tensors move in `buckets` buckets.
double moving(const Model& m, double buckets) {
  return buckets * m.latency + sum(m.tensors) * crossing(m) / m.link;
}

Model healthy(Dice& dice) {
  Model m;
  m.ranks = dice.pick(2, 12);
  m.hosts = dice.pick(1, std::min(3, m.ranks));
  m.steps = dice.pick(15, 40);
  m.noise = dice.between(0.003, 0.03);
  m.link = dice.scaled(4, 20);
  m.packing = dice.scaled(10, 40);
  m.latency = dice.scaled(10 * kUs, 60 * kUs);
  for (int i = dice.pick(10, 120); i > 0; --i)
    m.tensors.push_back(std::floor(dice.scaled(0.1 * kMiB, 16 * kMiB)));
  m.compute = moving(m, 8) * dice.between(2, 6);
  return m;
}

void make_small(Model& m, Dice& dice) {
  m.waits_at_once = true;
  for (auto& bytes : m.tensors) bytes = std::floor(dice.scaled(256, 24 * 1024));
  m.latency = dice.scaled(20 * kUs, 200 * kUs);
  const double count = static_cast<double>(m.tensors.size());
  m.compute = moving(m, count) * dice.between(0.5, 3);
  // Ranks that synchronise so often cannot be far apart.
  m.noise = std::min(m.noise, 0.2 * m.latency * count / m.compute);
}

Model model_of(Fault fault, Dice& dice) {
  auto m = healthy(dice);
  switch (fault) {
    case Fault::none:
      break;
    case Fault::straggler:
      m.late = dice.pick(0, m.ranks - 1);
      m.late_by = dice.between(0.15, 1);
      break;
    case Fault::slow_link:
      m.link = dice.scaled(0.03, 0.5);
      m.compute = moving(m, 8) * dice.between(0.2, 1);
      break;
    case Fault::slow_packing:
      m.packing = dice.scaled(0.1, 0.6);
      m.compute = 2 * sum(m.tensors) / m.packing * dice.between(0.2, 1.5);
      break;
    case Fault::small_buckets:
      make_small(m, dice);
      break;
    case Fault::exposed:
      m.waits_at_once = true;
      for (auto& bytes : m.tensors) bytes = std::floor(dice.scaled(kMiB, 16 * kMiB));
      m.compute = moving(m, static_cast<double>(m.tensors.size())) * dice.between(0.7, 4);
      break;
  }
  return m;
}

/// Simulates a training and writes the records of its ranks.
class Training {
 public:
  Training(const Model& model, Dice& dice) : m_(model), dice_(dice) {
    const auto n = static_cast<std::size_t>(m_.ranks);
    now_.assign(n, 0);
    for (auto& now : now_) now = dice_.between(0, kMs);
    for (int h = 0; h < m_.hosts; ++h) ahead_.push_back(dice_.between(-3, 3) * kMs);
    for (int r = 0; r < m_.ranks; ++r) {
      const int host = r * m_.hosts / m_.ranks;
      job_.ranks.push_back(std::make_unique<PlantedRank>(
          r, m_.ranks, host,
          static_cast<std::int64_t>(1e15 + ahead_[static_cast<std::size_t>(host)])));
    }
  }

  PlantedJob run() {
    for (int step = 0; step < m_.steps; ++step) {
      for (auto& now : now_) now += m_.compute / 3 * dice_.noisy(m_.noise);  // Forward.
      if (m_.waits_at_once) {
        step_by_step();
      } else {
        step_at_once();
      }
    }
    for (auto& rank : job_.ranks) {
      std::stable_sort(rank->records.begin(), rank->records.end(),
                       [](const Record& a, const Record& b) { return a.ticks < b.ticks; });
    }
    job_.culprit = m_.late;
    job_.delay_ns = m_.compute * 2 / 3 * m_.late_by;
    return std::move(job_);
  }

 private:
  using Times = std::vector<double>;  ///< One time per rank.

  static std::uint64_t ticks(double ns) { return static_cast<std::uint64_t>(ns); }

  void put(std::size_t rank, const Record& record) { job_.ranks[rank]->records.push_back(record); }

  /// Every rank computes its next gradient and submits it.
  double submit(std::uint32_t tensor) {
    const double share = m_.compute * 2 / 3 / static_cast<double>(m_.tensors.size());
    double agreed = 0;
    for (std::size_t r = 0; r < now_.size(); ++r) {
      const bool late = static_cast<int>(r) == m_.late;
      now_[r] += share * dice_.noisy(m_.noise) * (late ? 1 + m_.late_by : 1);
      put(r, {.ticks = ticks(now_[r]), .kind = RecordKind::submit, .id = tensor});
      agreed = std::max(agreed, now_[r]);
    }
    return agreed;
  }

  /// Moves some tensors, starting at `from`; returns the time at which they have moved.
  double move(double from, const std::vector<std::uint32_t>& tensors) {
    double bytes = 0;
    for (const auto tensor : tensors) bytes += m_.tensors[tensor];
    const double pack = bytes / m_.packing * dice_.noisy(m_.noise);
    const double took =
        m_.latency * dice_.noisy(0.1) + bytes * crossing(m_) / m_.link * dice_.noisy(m_.noise);
    const double end = from + 2 * pack + took;
    for (std::size_t r = 0; r < now_.size(); ++r) {
      const double seen = dice_.between(0, kNearlyNow);
      const auto begun = ticks(from + seen);
      put(r, timeline::encode({.mover = timeline::Mover::gloo,
                               .tensors = static_cast<std::uint32_t>(tensors.size()),
                               .entry = entry_,
                               .bytes = ticks(bytes)},
                              begun));
      for (const auto tensor : tensors) {
        put(r, {.ticks = begun, .kind = RecordKind::members, .detail = 1, .id = tensor});
      }
      const auto ended = ticks(end + seen);
      put(r, timeline::encode(
                 timeline::Copies{.entry = entry_, .in = ticks(pack), .out = ticks(pack)}, ended));
      put(r, {.ticks = ended, .kind = RecordKind::end, .x = entry_});
    }
    ++entry_;
    return end;
  }

  void wait(double until, std::uint32_t tensor) {
    for (std::size_t r = 0; r < now_.size(); ++r) {
      const double woken = std::max(now_[r], until) + dice_.between(kNearlyNow, 2 * kNearlyNow);
      put(r, {.ticks = ticks(woken), .kind = RecordKind::wait, .id = tensor, .x = ticks(now_[r])});
      now_[r] = woken;
    }
  }

  void step_by_step() {
    for (std::uint32_t t = 0; t < m_.tensors.size(); ++t)
      wait(move(submit(t) + kNearlyNow, {t}), t);
  }

  /// Tensors are submitted when they are ready, and fused while the operation before them moves.
  void step_at_once() {
    std::vector<double> agreed;
    for (std::uint32_t t = 0; t < m_.tensors.size(); ++t) agreed.push_back(submit(t));
    double free = 0;
    std::uint32_t next = 0;
    while (next < agreed.size()) {
      const double from = std::max(free, agreed[next] + kNearlyNow);
      std::vector<std::uint32_t> bucket;
      for (double bytes = 0; next < agreed.size() && agreed[next] < from; ++next) {
        bytes += m_.tensors[next];
        if (!bucket.empty() && bytes > kFused) break;
        bucket.push_back(next);
      }
      free = move(from, bucket);
    }
    wait(free, static_cast<std::uint32_t>(m_.tensors.size()) - 1);
  }

  const Model& m_;
  Dice& dice_;
  Times now_;
  std::vector<double> ahead_;
  PlantedJob job_;
  std::uint64_t entry_ = 0;
};

}  // namespace

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::straggler:
      return "straggler";
    case Fault::slow_link:
      return "slow_link";
    case Fault::slow_packing:
      return "slow_packing";
    case Fault::small_buckets:
      return "small_buckets";
    case Fault::exposed:
      return "exposed";
  }
  return "";
}

PlantedRank::PlantedRank(int rank, int size, int host, std::int64_t clock_ahead)
    : clock_ahead_(clock_ahead) {
  identity_.rank = rank;
  identity_.size = size;
  identity_.set_host(fmt::format("node{}", host));
}

PlantedJob plant(Fault fault, std::uint64_t seed) {
  Dice dice(seed * 16 + static_cast<std::uint64_t>(fault));
  const auto model = model_of(fault, dice);
  return Training(model, dice).run();
}

void read_planted(PlantedJob job, timeline::OperationSink& sink) {
  timeline::ClockEstimator estimator(job.ranks.size(), job.ranks.front()->identity().host_text());
  for (const auto& rank : job.ranks) {
    for (const auto& record : rank->records) estimator.take(*rank, record);
  }
  const auto shifts = estimator.shifts();
  for (const auto& rank : job.ranks) {
    const auto shift = shifts.find(rank->identity().host_text());
    if (shift != shifts.end()) rank->shift_clock(shift->second.ns);
  }

  struct Next {
    std::int64_t ns;
    const PlantedRank* rank;
    const Record* record;
  };

  std::vector<Next> all;
  for (const auto& rank : job.ranks) {
    sink.saw_rank(rank->rank(), rank->identity().host_text());
    for (const auto& record : rank->records)
      all.push_back({rank->wall_ns(record.ticks), rank.get(), &record});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Next& a, const Next& b) { return a.ns < b.ns; });
  timeline::EntryMatcher matcher(sink, job.ranks.size(), timeline::EntryMatcher::Clocks::aligned);
  for (const auto& next : all) matcher.take(*next.rank, *next.record);
  matcher.finish();
}

}  // namespace horo::testing
