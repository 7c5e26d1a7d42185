// SPDX-License-Identifier: Apache-2.0
// Computes the figures of a timeline while its operations stream in; verdict.hpp interprets them.
// Memory grows with ranks and tensors, not with events.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/analysis/device_work.hpp"
#include "timeline/analysis/histogram.hpp"
#include "timeline/analysis/intervals.hpp"
#include "timeline/analysis/lateness.hpp"
#include "timeline/analysis/model.hpp"
#include "timeline/analysis/occasions.hpp"

namespace horo::timeline {

struct RankFigures {
  std::string host;
  std::uint64_t arrivals = 0;  ///< Number of operations with a known time of arrival of this rank.
  std::uint64_t last = 0;      ///< Number of those operations at which this rank arrived last.
  std::uint64_t occasions_last = 0;  ///< See Figures::occasions.
  double last_by_ns = 0;      ///< Sum of its delays behind the next to last rank, when it was last.
  double caused_wait_ns = 0;  ///< Time in which another rank waited for this rank alone.
  double late_ns = 0;         ///< Sum of its delays behind the first rank.
  double waited_ns = 0;       ///< Time inside waits.
  double communicated_ns = 0;
  double exposed_ns = 0;  ///< Communication time that was not overlapped with computation.
  double computed_ns = 0;
  std::uint64_t dropped = 0;
};

/// Figures of the operations in one class of sizes.
struct SizeFigures {
  std::uint64_t least_bytes = 0;
  std::uint64_t operations = 0;
  double bytes = 0;
  double ns = 0;
  double best = 0;       ///< Bus bandwidth of the fastest operation, in GB/s.
  double bus_bytes = 0;  ///< Bytes between ranks: for an allreduce bytes times 2(n-1)/n.
};

struct SlowOperation {
  std::int64_t at_ns = 0;
  std::int64_t took_ns = 0;  ///< From the first submission to the end.
  std::int64_t negotiated_ns = 0;
  std::int64_t moved_ns = 0;
  std::int64_t device_ns = 0;  ///< As in ObservedOperation.
  std::uint64_t bytes = 0;
  std::uint32_t tensors = 0;
  std::string name;
  std::string kind;
  int last_rank = -1;
};

/// How far apart the ranks arrived at the operations whose first tensor has this name.
struct SkewFigures {
  std::string name;
  std::uint64_t operations = 0;
  double ns = 0;  ///< Sum of the times from the first rank to the last.
  double most_ns = 0;
};

struct ClockFigures {
  std::int64_t moved_ns = 0;
  std::int64_t error_ns = 0;
};

struct Figures {
  std::int64_t origin_ns = 0;  ///< The beginning of the timeline, whatever part is selected.
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t operations = 0;
  std::uint64_t tensors = 0;
  double bytes = 0;
  double moving_ns = 0;
  double packing_ns = 0;
  double packed_bytes = 0;  ///< Bytes of the operations that copied to a fusion buffer.
  std::uint64_t small = 0;  ///< Number of operations that are known to have less than kSmall bytes.
  double small_ns = 0;
  std::uint64_t fused = 0;  ///< Number of operations with several tensors.
  std::uint64_t with_arrivals = 0;
  /// How often some rank was last: operations that wait at the same time count once.
  std::uint64_t occasions = 0;
  Histogram negotiation;  ///< From the first submission to the agreement.
  Histogram queue;        ///< From the agreement to the first byte.
  Histogram moving;       ///< From the first byte to the last.
  Histogram step;
  std::vector<Interval> steps;  ///< Where there are very many, every second, fourth, ...
  double held_up_ns = 0;        ///< Time in which an operation lacked ranks and no data moved.
  double busy_ns = 0;           ///< Time in which data of at least one operation moved.
  DeviceFigures device;
  LatenessOverTime late;
  std::vector<SkewFigures> skews;
  std::map<std::string, ClockFigures> clocks;  ///< By host, without the reference host.
  std::map<int, RankFigures> ranks;
  std::map<std::uint64_t, SizeFigures> sizes;
  std::map<std::string, std::uint64_t> movers;
  /// Operations by path and reason. The number of rows is limited.
  std::map<std::pair<std::string, std::string>, std::uint64_t> paths;
  std::vector<SlowOperation> slowest;
  std::uint64_t stalls = 0;
  /// Tensors that the ranks submitted differently, and how often. The number of names is limited.
  std::map<std::string, std::uint64_t> mismatches;
  std::vector<TuningSwitch> switches;                   ///< Their number is limited.
  std::map<std::uint64_t, GenerationMark> generations;  ///< By number. Their number is limited.
  std::map<int, int> culprits;  ///< Lost ranks, and how many ranks reported each.
  std::vector<UnfinishedOperation> unfinished;
  std::vector<std::string> warnings;
  bool knows_waits = false;
  bool knows_compute = false;
  int only = -1;  ///< The selected rank; -1: all ranks.

  bool shows(int rank) const { return only < 0 || only == rank; }

  double span_ns() const { return static_cast<double>(last_ns - first_ns); }
};

inline constexpr std::uint64_t kSmall = 64 << 10;

/// Thread: owner.
class Analysis final : public OperationSink {
 public:
  Analysis(const Selection& selection, std::size_t top) : selection_(selection), top_(top) {
    figures_.only = selection.rank;
  }

  bool wants_members() const override { return false; }

  void starts(std::int64_t ns) override;
  void stepped(Interval when) override;
  void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) override;
  void operation(const ObservedOperation& operation) override;
  void waited(int rank, Interval when) override;
  void communicated(int rank, Interval when) override;
  void computed(int rank, Interval when) override;
  void worked(const DeviceWork& work) override;
  void no_device_times(int rank, std::string_view reason, std::int64_t ns) override;
  void stalled(int rank, int lines, std::int64_t ns) override;
  void mismatched(int rank, const std::string& name, std::int64_t ns) override;
  void lost(int rank, int culprit, std::int64_t ns) override;
  void tuned(const TuningSwitch& change) override;
  void entered(const GenerationMark& mark) override;
  void unfinished(const UnfinishedOperation& what) override;
  void dropped(int rank, std::uint64_t records) override;
  void saw_rank(int rank, std::string_view host) override;

  void warn(std::string_view line) override { figures_.warnings.emplace_back(line); }

  /// Returns the figures; nothing may be called afterwards.
  Figures finish();

 private:
  /// The selected part of `when`, if there is any; extends the span by it.
  std::optional<Interval> cover(Interval when);
  Interval clip(Interval when) const;
  bool is_selected(Interval when);
  void count_arrivals(const ObservedOperation& operation);
  void count_skew(const ObservedOperation& operation, std::int64_t first, std::int64_t last);
  void keep_most_skewed();
  void count_size(const ObservedOperation& operation);
  void count_path(const ObservedOperation& operation);
  void keep_if_slow(const ObservedOperation& operation);

  const Selection selection_;
  const std::size_t top_;
  bool begun_ = false;      ///< `origin_` is known.
  bool selecting_ = false;  ///< `origin_` has been used to select a part.
  bool covered_ = false;    ///< Something has been counted.
  std::int64_t origin_ = 0;
  Figures figures_;
  std::unordered_map<std::string, SkewFigures> skews_;
  std::uint64_t step_stride_ = 1;
  LatenessCost lateness_cost_;
  Occasions occasions_;
  Overlap negotiating_;           ///< Negotiation against data movement.
  std::map<int, Overlap> waits_;  ///< By rank: communication against waits for it.
  DeviceWorkSums devices_;
  std::map<int, Overlap> compute_;  ///< By rank: communication against computation.
};

}  // namespace horo::timeline
