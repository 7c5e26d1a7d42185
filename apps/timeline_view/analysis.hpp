// SPDX-License-Identifier: Apache-2.0
// Figures of a timeline, counted as it streams by; what they mean is verdict.hpp's. Memory grows
// with ranks and tensors, not with events.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/timeline_view/histogram.hpp"
#include "apps/timeline_view/intervals.hpp"
#include "apps/timeline_view/late_map.hpp"
#include "apps/timeline_view/model.hpp"

namespace horo::apps {

struct RankFigures {
  std::string host;
  std::uint64_t arrivals = 0;  ///< Operations of which it is known when it came.
  std::uint64_t last = 0;      ///< Of those, it came last.
  double last_by_ns = 0;       ///< By which it came after the one before it, when it was last.
  double caused_wait_ns = 0;   ///< In which another waited for it alone, as far as that is known.
  double late_ns = 0;          ///< After the first rank, in all.
  double waited_ns = 0;        ///< Inside waits.
  double communicated_ns = 0;
  double exposed_ns = 0;  ///< Communication that nothing was done beside.
  double computed_ns = 0;
  std::uint64_t dropped = 0;
};

/// Operations of about one size.
struct SizeFigures {
  std::uint64_t least_bytes = 0;
  std::uint64_t operations = 0;
  double bytes = 0;
  double ns = 0;
  double best = 0;       ///< Bus bandwidth of the fastest, in GB/s.
  double bus_bytes = 0;  ///< That crossed between ranks: bytes times 2(n-1)/n for an allreduce.
};

struct SlowOperation {
  std::int64_t at_ns = 0;
  std::int64_t took_ns = 0;  ///< From the first submission to the end.
  std::int64_t negotiated_ns = 0;
  std::int64_t moved_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tensors = 0;
  std::string name;
  std::string kind;
  int last_rank = -1;
};

/// How far the ranks came apart at the operations that begin with a tensor.
struct SkewFigures {
  std::string name;
  std::uint64_t operations = 0;
  double ns = 0;  ///< From the first rank to the last, in all.
  double most_ns = 0;
};

struct ClockFigures {
  std::int64_t moved_ns = 0;
  std::int64_t error_ns = 0;
};

struct Figures {
  std::int64_t origin_ns = 0;  ///< Where the timeline begins, selected or not.
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t operations = 0;
  std::uint64_t tensors = 0;
  double bytes = 0;
  double moving_ns = 0;
  double packing_ns = 0;
  double packed_bytes = 0;  ///< Of operations with copies.
  std::uint64_t small = 0;  ///< Operations of known sizes under kSmall bytes.
  double small_ns = 0;
  std::uint64_t fused = 0;  ///< Of several tensors.
  std::uint64_t with_arrivals = 0;
  Histogram negotiation;  ///< First submission to agreement.
  Histogram queue;        ///< Agreement to the first byte.
  Histogram moving;       ///< First byte to the last.
  Histogram step;
  std::vector<Interval> steps;  ///< Of very many every second, fourth, ...
  double held_up_ns = 0;        ///< An operation lacked ranks, and none moved.
  double busy_ns = 0;           ///< One moved at least.
  LateMap late;
  std::vector<SkewFigures> skews;
  std::map<std::string, ClockFigures> clocks;  ///< By host, but for the one the others are held to.
  std::map<int, RankFigures> ranks;
  std::map<std::uint64_t, SizeFigures> sizes;
  std::map<std::string, std::uint64_t> movers;
  std::vector<SlowOperation> slowest;
  std::uint64_t stalls = 0;
  /// Tensors that the ranks submitted differently, and how often; of very many the first.
  std::map<std::string, std::uint64_t> mismatches;
  std::map<int, int> culprits;  ///< Ranks that others lost, and how many said so.
  std::vector<Unfinished> unfinished;
  std::vector<std::string> warnings;
  bool knows_waits = false;
  bool knows_compute = false;
  int only = -1;  ///< The rank whose figures were asked for; -1: all.

  bool shows(int rank) const { return only < 0 || only == rank; }

  double span_ns() const { return static_cast<double>(last_ns - first_ns); }
};

inline constexpr std::uint64_t kSmall = 64 << 10;

/// Thread: owner.
class Analysis final : public Sink {
 public:
  Analysis(const Selection& selection, std::size_t top) : selection_(selection), top_(top) {
    figures_.only = selection.rank;
  }

  bool wants_members() const override { return false; }

  void starts(std::int64_t ns) override;
  void stepped(Interval when) override;
  void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) override;
  void operation(const Operation& operation) override;
  void waited(int rank, Interval when) override;
  void communicated(int rank, Interval when) override;
  void computed(int rank, Interval when) override;
  void stalled(int rank, int lines, std::int64_t ns) override;
  void mismatched(int rank, const std::string& name, std::int64_t ns) override;
  void lost(int rank, int culprit, std::int64_t ns) override;
  void unfinished(const Unfinished& what) override;
  void dropped(int rank, std::uint64_t records) override;
  void saw_rank(int rank, std::string_view host) override;

  void warn(std::string_view line) override { figures_.warnings.emplace_back(line); }

  /// The last call.
  Figures finish();

 private:
  /// The part of it that is selected, if any, which the span then covers.
  std::optional<Interval> cover(Interval when);
  Interval clip(Interval when) const;
  bool is_selected(Interval when);
  void count_arrivals(const Operation& operation);
  void count_skew(const Operation& operation, std::int64_t first, std::int64_t last);
  void keep_most_skewed();
  void count_size(const Operation& operation);
  void keep_if_slow(const Operation& operation);

  const Selection selection_;
  const std::size_t top_;
  bool begun_ = false;      ///< `origin_` is known.
  bool selecting_ = false;  ///< A part was told by it.
  bool covered_ = false;    ///< Something has been counted.
  std::int64_t origin_ = 0;
  Figures figures_;
  std::unordered_map<std::string, SkewFigures> skews_;
  std::uint64_t step_stride_ = 1;
  Blame blame_;
  Overlap negotiating_;             ///< Negotiation, and movement.
  std::map<int, Overlap> waits_;    ///< By rank: communication, and waits for it.
  std::map<int, Overlap> compute_;  ///< By rank: communication, and computing.
};

}  // namespace horo::apps
