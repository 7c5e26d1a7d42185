// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/predict.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace horo::runtime::sim {

namespace {

constexpr std::uint64_t kSmallest = 4;
// The first agrees on names, and after the others the hosts are as far apart as they stay.
constexpr int kStepsBefore = 3;
constexpr int kSteps = 4;
constexpr auto kLimit = std::chrono::hours(100'000);  // It is virtual time.

/// The steps of one training with one setting.
class StepRun {
 public:
  StepRun(StepPredictor& predictor, const Cluster& cluster, const TunedValues& values)
      : predictor_(predictor),
        training_(cluster.training),
        small_message_(values.small_message),
        world_(tuned(cluster, values)) {
    world_.network().use(links_of(cluster));
    credit_ = world_.network().links()->hosts.front().credit();
    for (const auto& link : world_.network().links()->hosts)
      credit_ = std::min(credit_, link.credit());
    places_.resize(static_cast<std::size_t>(world_.hosts()));
    world_.on_publish([this](int host, SetId, std::uint64_t entry) { entry_came(host, entry); });
    for (std::size_t t = 0; t < training_.tensors.size(); ++t) {
      names_.push_back(fmt::format("DistributedOptimizer.allreduce.{}", t));
      bytes_of_[names_.back()] = training_.tensors[t].bytes;
    }
  }

  /// Runs all steps. Each host begins its next step when it has the results of the one before, as
  /// a training does: one that has them early declares its tensors early, too.
  StepPrediction run() {
    for (std::size_t h = 0; h < places_.size(); ++h) begin_step(h);
    HORO_CHECK(world_.run(kLimit, [this] { return done_.size() == kStepsBefore + kSteps; }));
    const auto& first = done_[kStepsBefore - 1];
    const auto& last = done_.back();
    return {.step = (last.at - first.at) / kSteps,
            .entries = (last.entries - first.entries) / kSteps};
  }

 private:
  static WorldParams tuned(const Cluster& cluster, const TunedValues& values) {
    auto params = params_of(cluster);
    params.rules.fusion_threshold = values.fusion_threshold;
    params.rules.cycle = values.cycle;
    params.caller_runs = true;
    return params;
  }

  /// A step that all hosts have done.
  struct Done {
    TimePoint at{};
    std::uint64_t entries = 0;  ///< Since the first step.
  };

  void begin_step(std::size_t host) {
    auto& place = places_[host];
    place.begin = world_.network().now();
    place.left = training_.tensors.size();
    for (std::size_t t = 0; t < training_.tensors.size(); ++t)
      world_.network().at(place.begin + training_.tensors[t].at,
                          [this, host, t] { submit(host, t); });
  }

  void end_step(std::size_t host) {
    const auto steps = ++places_[host].steps;
    const bool by_all = std::all_of(places_.begin(), places_.end(),
                                    [steps](const Place& one) { return one.steps >= steps; });
    if (by_all) done_.push_back({.at = world_.network().now(), .entries = entries_});
    if (steps < kStepsBefore + kSteps) begin_step(host);
  }

  void submit(std::size_t host, std::size_t tensor) {
    Signature signature;
    const auto extent = static_cast<std::int64_t>(training_.tensors[tensor].bytes / 4);
    HORO_CHECK(set_shape(signature, {&extent, 1}));
    for (const auto rank : world_.params().hosts[host].ranks)
      HORO_CHECK(world_.submit(rank, names_[tensor], signature));
  }

  /// An entry of the log, until all hosts have run it.
  struct Running {
    std::vector<std::string> names;
    std::uint64_t bytes = 0;
    std::size_t arrived = 0;  ///< At so many hosts.
    std::size_t left = 0;     ///< At so many hosts it has not ended.
    TimePoint begin{};        ///< When the root has cut it, if it came to no host late.
  };

  /// The entries of a host, and its step.
  struct Place {
    std::uint64_t came = 0;       ///< Entries that it has.
    std::uint64_t scheduled = 0;  ///< Entries whose end is known.
    TimePoint ended{};            ///< The end of the last of them.
    TimePoint link_free{};        ///< When the link has carried their bytes, as Network's cards.
    TimePoint begin{};            ///< The step began then.
    std::size_t left = 0;         ///< Tensors of the step that have no result.
    int steps = 0;                ///< Steps that it has done.
  };

  Running& running(std::uint64_t entry) { return running_[entry - finished_]; }

  void entry_came(int host, std::uint64_t entry) {
    auto& records = world_.log(host);
    if (entry == finished_ + running_.size()) add_entry(records.records().back());
    records.forget_records();
    auto& one = running(entry);
    const auto now = world_.network().now();
    ++one.arrived;
    one.begin = std::max(one.begin, now - predictor_.delays()[static_cast<std::size_t>(host)]);
    places_[static_cast<std::size_t>(host)].came = entry + 1;
    // A sum ends nowhere before the last host has begun it.
    if (one.arrived < places_.size()) return;
    for (std::size_t h = 0; h < places_.size(); ++h) schedule(h);
  }

  void add_entry(const SimRecord& record) {
    Running one{.names = record.names, .left = places_.size()};
    for (const auto& name : one.names) one.bytes += bytes_of_.at(name);
    running_.push_back(std::move(one));
    ++entries_;
  }

  /// Sets the ends of entries on a host, in their order.
  void schedule(std::size_t host) {
    auto& place = places_[host];
    for (; place.scheduled < place.came; ++place.scheduled) {
      const auto& one = running(place.scheduled);
      if (one.arrived < places_.size()) return;
      const auto times = predictor_.sum_times(one.bytes, small_message_);
      // Alone, it would end so, and its bytes would be at the link at that time.
      const auto alone = one.begin + times.ends[host];
      const auto at_link = alone - std::max(Duration{}, times.link - credit_);
      place.link_free = std::max(place.link_free, at_link - credit_) + times.link;
      place.ended = std::max({alone, place.link_free, place.ended});
      world_.network().at(place.ended, [this, host, entry = place.scheduled] { end(host, entry); });
    }
  }

  void end(std::size_t host, std::uint64_t entry) {
    auto& one = running(entry);
    --one.left;
    auto& place = places_[host];
    place.left -= one.names.size();
    while (!running_.empty() && running_.front().left == 0) {
      running_.pop_front();
      ++finished_;
    }
    world_.log(static_cast<int>(host)).finish_next();
    if (place.left > 0) return;
    const auto computed = std::max(world_.network().now(), place.begin + training_.compute);
    world_.network().at(computed, [this, host] { end_step(host); });
  }

  StepPredictor& predictor_;
  const TrainingStep& training_;
  const std::uint64_t small_message_;
  World world_;
  Duration credit_{};  ///< The time that a link's burst saves, on the link where it is least.
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint64_t> bytes_of_;
  std::vector<Place> places_;    ///< By host.
  std::deque<Running> running_;  ///< By entry, from the first that has not ended everywhere.
  std::uint64_t finished_ = 0;
  std::uint64_t entries_ = 0;
  std::vector<Done> done_;
};

/// By host, how much later than at the root an entry arrives.
std::vector<Duration> delays_of(const Cluster& cluster) {
  World world(params_of(cluster));
  world.network().use(links_of(cluster));
  std::vector<TimePoint> came(static_cast<std::size_t>(world.hosts()));
  std::size_t arrived = 0;
  world.on_publish([&](int host, SetId, std::uint64_t) {
    came[static_cast<std::size_t>(host)] = world.network().now();
    ++arrived;
  });
  Signature signature;
  const std::int64_t extent = 1;
  HORO_CHECK(set_shape(signature, {&extent, 1}));
  for (int r = 0; r < world.size(); ++r) HORO_CHECK(world.submit(Rank{r}, "one", signature));
  HORO_CHECK(world.run(kLimit, [&] { return arrived == came.size(); }));
  std::vector<Duration> delays;
  for (const auto time : came) delays.push_back(time - came.front());
  return delays;
}

}  // namespace

StepPredictor::StepPredictor(const Cluster& cluster)
    : cluster_(cluster), delays_(delays_of(cluster)), sums_(cluster) {
  HORO_CHECK(cluster.hosts() > 1 && !cluster.training.tensors.empty());
  sums_.start();
}

StepPrediction StepPredictor::predict(const TunedValues& values) {
  return StepRun(*this, cluster_, values).run();
}

StepPredictor::SumTimes StepPredictor::sum_times(std::uint64_t bytes, std::uint64_t small_message) {
  // Between the powers of two and their halves times three the time is nearly linear.
  const auto power = std::bit_floor(std::max(bytes, kSmallest));
  const auto half = power + power / 2;
  auto low = bytes < half ? power : half;
  auto high = bytes < half ? half : 2 * power;
  if (bytes > low && high % 4 == 0) {
    // Another way that begins between them makes a step.
    const auto last = last_of_way(low, high, small_message);
    if (bytes <= last) {
      high = last;
    } else if (last < high) {
      low = last + 4;
    }
  }
  auto times = simulated_sum(low, small_message);
  if (bytes <= low || high <= low || high % 4 != 0) return times;
  const auto& end = simulated_sum(high, small_message);
  const auto share = static_cast<double>(bytes - low) / static_cast<double>(high - low);
  const auto advance = [share](Duration& from, Duration to) {
    from += Duration(static_cast<Duration::rep>(static_cast<double>((to - from).count()) * share));
  };
  advance(times.link, end.link);
  for (std::size_t h = 0; h < times.ends.size(); ++h) advance(times.ends[h], end.ends[h]);
  return times;
}

/// The largest size from `low` to `high` that is summed as `low` is.
std::uint64_t StepPredictor::last_of_way(std::uint64_t low, std::uint64_t high,
                                         std::uint64_t small_message) const {
  const auto way = sums_.way_of(low, small_message);
  if (sums_.way_of(high, small_message) == way) return high;
  while (high - low > 4) {
    const auto middle = (low + high) / 8 * 4;
    (sums_.way_of(middle, small_message) == way ? low : high) = middle;
  }
  return low;
}

const StepPredictor::SumTimes& StepPredictor::simulated_sum(std::uint64_t bytes,
                                                            std::uint64_t small_message) {
  const std::pair key(bytes, small_message);
  const auto found = times_.find(key);
  if (found != times_.end()) return found->second;
  auto report = sums_.sum(bytes, delays_, small_message);
  return times_[key] = {.ends = std::move(report.ends), .link = report.link};
}

}  // namespace horo::runtime::sim
