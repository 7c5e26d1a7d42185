// SPDX-License-Identifier: Apache-2.0
// The buckets of a backend that hands its work to other backends, in the order of their start.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "base/race_point.hpp"

namespace horo::runtime {

/// Counts the buckets and completes them in order; `Active` is what its owner knows of one bucket.
/// References to buckets stay valid until they complete. Thread: owner.
template <typename Active>
class BucketQueue {
 public:
  void start(Active bucket) {
    active_.push_back(std::move(bucket));
    ++started_;
  }

  /// Completes the oldest buckets for which `is_done` holds, until the first for which it does not.
  template <typename IsDone>
  void retire(const IsDone& is_done) {
    race_point();
    while (!active_.empty() && is_done(active_.front())) {
      active_.pop_front();
      ++completed_;
    }
  }

  /// Buckets have completed since the last call, inside Backend::start too: Backend::progress
  /// reports them.
  bool take_news() { return std::exchange(reported_, completed_) != completed_; }

  /// Drops the buckets; they do not count as completed.
  void clear() { active_.clear(); }

  bool empty() const { return active_.empty(); }

  auto begin() { return active_.begin(); }

  auto begin() const { return active_.begin(); }

  auto end() const { return active_.end(); }

  auto end() { return active_.end(); }

  std::uint64_t started() const { return started_; }

  std::uint64_t completed() const { return completed_; }

 private:
  std::deque<Active> active_;
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t reported_ = 0;  ///< Those that take_news() has reported.
};

}  // namespace horo::runtime
