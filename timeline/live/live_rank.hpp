// SPDX-License-Identifier: Apache-2.0
// The state of one running rank, derived record by record. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "timeline/record/record.hpp"

namespace horo::timeline {

/// A tensor, identified among the tensors of all process sets.
struct TensorKey {
  std::uint16_t set = 0;
  std::uint32_t id = 0;

  friend bool operator==(const TensorKey&, const TensorKey&) = default;
};

struct TensorKeyHash {
  std::size_t operator()(const TensorKey& key) const {
    return std::size_t{key.set} << 32U | key.id;
  }
};

/// Thread: owner. Times are nanoseconds on a clock that the job's ranks on this host share.
class LiveRank {
 public:
  /// A wait or an operation in progress.
  struct Activity {
    TensorKey tensor;
    std::uint32_t tensors = 1;
    std::int64_t since = 0;
  };

  /// Sums since the beginning of the window.
  struct Totals {
    double operations = 0;
    double bytes = 0;
    double waited_ns = 0;
  };

  using Submitted = std::unordered_map<TensorKey, std::int64_t, TensorKeyHash>;

  /// Starts a new window, which counts the operations that end after `ns`.
  void open_window(std::int64_t ns);
  /// Takes the records in order of time. `since`: when a wait began, for wait records.
  void take(const Record& record, std::int64_t ns, std::int64_t since = 0);
  /// Records older than `ns` were overwritten before they could be read, so everything that was in
  /// progress may have ended.
  void lose_before(std::int64_t ns);

  /// The operation whose data is moving, if there is one.
  std::optional<Activity> moves() const;
  /// The submitted tensor that has been waiting for other ranks for the longest time.
  std::optional<Activity> waits() const;

  /// Tensors that were submitted and are in no operation yet, with the time of submission.
  const Submitted& submitted() const { return submitted_; }

  /// Whether an operation with this tensor has begun since `ns`.
  bool has_begun(const TensorKey& tensor, std::int64_t ns) const;

  bool is_in(std::uint16_t set) const { return newest_.contains(set); }

  Totals done() const;

  /// The time from which on no record is missing.
  std::int64_t known_from() const { return known_from_; }

  /// The time of the newest record; 0: there was none.
  std::int64_t last_ns() const { return last_ns_; }

  std::uint64_t stalls() const { return stalls_; }

 private:
  struct Entry {
    Begin what;
    std::int64_t begun = 0;
    std::optional<TensorKey> first;
    std::uint32_t lacking = 0;  ///< Number of members whose records have not come yet.
  };

  void begin(const Record& record, std::int64_t ns);
  void add_members(const Record& record, std::int64_t ns);
  void end(const Record& record, std::int64_t ns);

  Submitted submitted_;
  Submitted begun_;  ///< By tensor: when its last operation began.
  std::deque<Entry> entries_;
  std::map<std::uint16_t, std::uint64_t> newest_;     ///< By set: number of entries that ended.
  std::map<std::uint16_t, std::uint64_t> at_window_;  ///< The same at the beginning of the window.
  std::int64_t window_ns_ = 0;
  std::int64_t known_from_ = 0;
  Totals seen_;
  bool incomplete_ = false;  ///< Some records of this window were lost.
  std::int64_t last_ns_ = 0;
  std::uint64_t stalls_ = 0;
};

}  // namespace horo::timeline
