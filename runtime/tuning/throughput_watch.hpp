// SPDX-License-Identifier: Apache-2.0
// Watches a training whose tuning has settled, and says when it has been slower for so long that
// another search is worth its cost. Pure: times come in, no clock is read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace horo::runtime::tuning {

struct WatchRules {
  double least_seconds = 60;  ///< A fall counts when it has lasted so long.
  double least_fall = 0.1;    ///< A smaller share of the throughput is no fall.
};

/// One look at the training.
struct WatchSample {
  double score = 0;           ///< Bytes per second.
  double bytes_per_step = 0;  ///< Shows whether the steps are still the same.
  double seconds = 0;         ///< The end of the sample, on any clock.
};

enum class WatchFinding : std::uint8_t {
  learns,   ///< The usual throughput is not known yet.
  steady,   ///< Nothing is wrong, or not for long.
  fallen,   ///< The throughput has been lower for long.
  changed,  ///< The steps have moved other amounts of data for long: another phase.
};

/// The usual throughput is the median of the first samples. A fall must exceed the noise of these
/// samples, and last. A low phase that ended by itself (an evaluation, a neighbour's short job)
/// will probably come again, so the next one must last three times as long as it did. Steps that
/// move another amount of data are not compared: an evaluation reduces other tensors. They must
/// last ten times as long as a fall. Thread: owner.
class ThroughputWatch {
 public:
  explicit ThroughputWatch(const WatchRules& rules)
      : rules_(rules),
        needed_fall_(rules.least_seconds),
        needed_change_(10 * rules.least_seconds) {}

  /// After `fallen` or `changed`, begin() must follow.
  WatchFinding add(const WatchSample& sample);

  /// Forgets the usual throughput: after a change of the tuning.
  void begin();

  /// After a search that found nothing: the next fall or change must last twice as long.
  void be_patient();

  /// Bytes per second; 0: not known yet.
  double usual() const { return usual_; }

  /// The median of the samples since the fall began; 0: there is no fall.
  double now() const;

 private:
  /// A run of samples of one kind. It ends when two others follow each other.
  struct Phase {
    std::vector<double> scores;
    double since = 0;
    double until = 0;
    int others = 0;
  };

  void learn(const WatchSample& sample);
  /// `seconds`, but no less than `present`, and no more than is reasonable.
  static double longer(double present, double seconds);
  /// Adds a sample to `phase`, or counts one of another kind. True: the phase has ended by itself.
  static bool follow(Phase& phase, bool belongs, const WatchSample& sample);
  static bool is_long(const Phase& phase, double needed);

  const WatchRules rules_;
  double needed_fall_;
  double needed_change_;
  std::vector<WatchSample> first_;
  double usual_ = 0;
  double band_ = 0;  ///< Share of the usual throughput that is no fall.
  double bytes_per_step_ = 0;
  Phase low_;
  Phase high_;
  Phase different_;
};

}  // namespace horo::runtime::tuning
