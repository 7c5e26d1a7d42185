// SPDX-License-Identifier: Apache-2.0
// The common form that all input formats are converted to before anything is counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace horo::timeline {

/// The time at which a rank had submitted all tensors of an operation.
struct Arrival {
  int rank = 0;
  std::int64_t ns = 0;
};

/// One operation on one tensor or on several fused tensors. Times are nanoseconds since a moment
/// that all ranks share.
struct ObservedOperation {
  std::string name;                  ///< The name of the first tensor.
  std::vector<std::string> members;  ///< The names of all tensors, if the sink wants them.
  std::string kind;                  ///< "ALLREDUCE"
  std::string mover;                 ///< "SHM", "NCCL"; empty: not known.
  std::string path;                  ///< "by hosts", "whole"; empty: not known, or the only one.
  std::string path_reason;           ///< Why it took this path.
  std::uint32_t tensors = 1;
  std::uint64_t bytes = 0;
  int ranks = 0;  ///< Number of ranks that are known to have taken part.
  std::vector<Arrival> arrivals;
  std::int64_t submitted = 0;  ///< When the first rank submitted.
  std::int64_t agreed = 0;     ///< When the last rank had submitted.
  std::int64_t begun = 0;      ///< When the first bytes moved.
  std::int64_t ended = 0;
  std::int64_t packing_ns = 0;  ///< Duration of the copies to and from a fusion buffer.
  /// How long the device of a rank worked for it, of the rank where that is longest; 0: no device
  /// did, or it is not known.
  std::int64_t device_ns = 0;
};

struct Interval {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// A rank's device worked for an operation.
struct DeviceWork {
  int rank = 0;
  std::string activity;  ///< "NCCL_ALLREDUCE", "PACK"
  Interval when;
};

/// A tensor that only some ranks had submitted when the records were saved.
struct UnfinishedOperation {
  std::string name;
  Interval when;             ///< From the first submission to the end of the records.
  std::vector<int> waiting;  ///< Sorted, as is `missing`.
  std::vector<int> missing;
};

/// The ranks changed the tuning between two operations.
struct TuningSwitch {
  std::int64_t ns = 0;
  std::string changes;  ///< "fusion.threshold 64 MiB to 2 MiB"
};

/// A rank has entered a generation of an elastic job.
struct GenerationMark {
  std::int64_t ns = 0;
  std::uint64_t generation = 0;
  int ranks = 0;
  int survivors = 0;  ///< How many of the ranks were in the generation before.
};

/// Receives the findings of readers. Readers know the file formats, sinks compute the figures.
class OperationSink {
 public:
  virtual ~OperationSink() = default;
  /// Whether the sink uses `ObservedOperation::members`, which cost a string per tensor.
  virtual bool wants_members() const = 0;
  /// The time at which a file begins: called first, and again if an earlier event is found.
  virtual void starts(std::int64_t ns) = 0;
  virtual void operation(const ObservedOperation& operation) = 0;
  /// A training step, from its beginning to that of the next step.
  virtual void stepped(Interval when) = 0;
  /// How far a host's clock was corrected, and its remaining error.
  virtual void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) = 0;
  /// A caller waited for an operation.
  virtual void waited(int rank, Interval when) = 0;
  /// A rank communicated or computed, according to a profiler.
  virtual void communicated(int rank, Interval when) = 0;
  virtual void computed(int rank, Interval when) = 0;
  virtual void worked(const DeviceWork& work) = 0;
  /// It is not known when the rank's device worked for an operation.
  virtual void no_device_times(int rank, std::string_view reason, std::int64_t ns) = 0;
  virtual void stalled(int rank, int lines, std::int64_t ns) = 0;
  /// The ranks submitted different tensors or operations under this name.
  virtual void mismatched(int rank, const std::string& name, std::int64_t ns) = 0;
  virtual void lost(int rank, int culprit, std::int64_t ns) = 0;
  virtual void tuned(const TuningSwitch& change) = 0;
  /// Called for each rank that has entered the generation.
  virtual void entered(const GenerationMark& mark) = 0;
  /// Called at the end. Where the same ranks miss several tensors, only the first is reported.
  virtual void unfinished(const UnfinishedOperation& what) = 0;
  /// Number of records that were dropped while recording.
  virtual void dropped(int rank, std::uint64_t records) = 0;
  virtual void saw_rank(int rank, std::string_view host) = 0;
  /// A line for people about damaged or doubtful input.
  virtual void warn(std::string_view line) = 0;
};

/// The part of the input that is analysed.
struct Selection {
  int rank = -1;  ///< -1: all.
  /// Seconds since the beginning of the timeline.
  double from = -kEver;
  double to = kEver;

  bool limits_time() const { return from > -kEver || to < kEver; }

  static constexpr double kEver = 1e300;
};

}  // namespace horo::timeline
