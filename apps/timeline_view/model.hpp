// SPDX-License-Identifier: Apache-2.0
// What all formats are turned into before anything is counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace horo::apps {

/// When a rank had submitted all tensors of an operation.
struct Arrival {
  int rank = 0;
  std::int64_t ns = 0;
};

/// One operation, of one tensor or several that were fused. Times are nanoseconds since some moment
/// that all ranks share.
struct Operation {
  std::string name;                  ///< Of its first tensor.
  std::vector<std::string> members;  ///< Of all, where the sink wants to know.
  std::string kind;                  ///< "ALLREDUCE"
  std::string mover;                 ///< "SHM", "NCCL"; empty: not known.
  std::uint32_t tensors = 1;
  std::uint64_t bytes = 0;
  int ranks = 0;  ///< That took part, as far as is known.
  std::vector<Arrival> arrivals;
  std::int64_t submitted = 0;  ///< By the first rank.
  std::int64_t agreed = 0;     ///< The last rank had submitted.
  std::int64_t begun = 0;      ///< Its bytes began to move.
  std::int64_t ended = 0;
  std::int64_t packing_ns = 0;  ///< Copying to and from a fusion buffer.
};

struct Interval {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// What some ranks had submitted when the records were taken, and others had not.
struct Unfinished {
  std::string name;
  Interval when;             ///< Since the first of them submitted it.
  std::vector<int> waiting;  ///< Ascending, as `missing`.
  std::vector<int> missing;
};

/// Takes what readers find. Readers know no figures, sinks know no formats.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Whether it looks at `Operation::members`: a string per tensor.
  virtual bool wants_members() const = 0;
  /// When a file begins: before all else of it, and again where something still earlier comes.
  virtual void starts(std::int64_t ns) = 0;
  virtual void operation(const Operation& operation) = 0;
  /// From the beginning of a training's step to that of the next.
  virtual void stepped(Interval when) = 0;
  /// By how much a host's clock was moved, and may still be wrong.
  virtual void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) = 0;
  /// A caller waited for an operation.
  virtual void waited(int rank, Interval when) = 0;
  /// A rank moved bytes, or computed, by a profiler's word.
  virtual void communicated(int rank, Interval when) = 0;
  virtual void computed(int rank, Interval when) = 0;
  virtual void stalled(int rank, int lines, std::int64_t ns) = 0;
  /// What the ranks submitted under this name differed.
  virtual void mismatched(int rank, const std::string& name, std::int64_t ns) = 0;
  virtual void lost(int rank, int culprit, std::int64_t ns) = 0;
  /// At the end; of those that the same ranks are missing from the first.
  virtual void unfinished(const Unfinished& what) = 0;
  /// Records that are missing although the file is whole.
  virtual void dropped(int rank, std::uint64_t records) = 0;
  virtual void saw_rank(int rank, std::string_view host) = 0;
  /// Damage, for people; one line.
  virtual void warn(std::string_view line) = 0;
};

/// What of the input is looked at.
struct Selection {
  int rank = -1;  ///< -1: all.
  /// Seconds since the timeline begins.
  double from = -kEver;
  double to = kEver;

  bool limits_time() const { return from > -kEver || to < kEver; }

  static constexpr double kEver = 1e300;
};

}  // namespace horo::apps
