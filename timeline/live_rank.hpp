// SPDX-License-Identifier: Apache-2.0
// What one rank is about, followed record by record while it runs. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "timeline/record.hpp"

namespace horo::timeline {

/// A tensor's place among all process sets'.
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

/// Thread: owner. Times are nanoseconds that the job's ranks on this host share.
class LiveRank {
 public:
  /// Something that has been under way since then.
  struct Doing {
    TensorKey tensor;
    std::uint32_t tensors = 1;
    std::int64_t since = 0;
  };

  /// What was done from the beginning of a window on.
  struct Done {
    double operations = 0;
    double bytes = 0;
    double waited_ns = 0;
  };

  using Submitted = std::unordered_map<TensorKey, std::int64_t, TensorKeyHash>;

  /// From now on operations count that end after `ns`.
  void open_window(std::int64_t ns);
  /// In the order of time. `since`: of a wait, when it began.
  void take(const Record& record, std::int64_t ns, std::int64_t since = 0);
  /// Records older than `ns` were overwritten before they could be read: what was under way may
  /// have ended.
  void lose_before(std::int64_t ns);

  /// The operation that moves; none: nothing does.
  std::optional<Doing> moves() const;
  /// The tensor that has been waiting for other ranks the longest.
  std::optional<Doing> waits() const;

  /// Tensors that were submitted and are in no operation, and since when.
  const Submitted& submitted() const { return submitted_; }

  /// Whether it has taken this tensor into an operation since `ns`.
  bool has_begun(const TensorKey& tensor, std::int64_t ns) const;

  bool is_in(std::uint16_t set) const { return newest_.contains(set); }

  Done done() const;

  /// From when on all is known that it did.
  std::int64_t known_from() const { return known_from_; }

  /// Of its newest record; 0: there was none.
  std::int64_t last_ns() const { return last_ns_; }

  std::uint64_t stalls() const { return stalls_; }

 private:
  struct Entry {
    Begin what;
    std::int64_t begun = 0;
    std::optional<TensorKey> first;
    std::uint32_t lacking = 0;  ///< Members whose records are to come.
  };

  void add_members(const Record& record, std::int64_t ns);
  void end(const Record& record, std::int64_t ns);

  Submitted submitted_;
  Submitted begun_;  ///< By tensor: the last time.
  std::deque<Entry> entries_;
  std::map<std::uint16_t, std::uint64_t> newest_;     ///< By set: entries that have ended.
  std::map<std::uint16_t, std::uint64_t> at_window_;  ///< The same at the window's beginning.
  std::int64_t window_ns_ = 0;
  std::int64_t known_from_ = 0;
  Done seen_;
  bool incomplete_ = false;  ///< Records of this window were lost.
  std::int64_t last_ns_ = 0;
  std::uint64_t stalls_ = 0;
};

}  // namespace horo::timeline
