// SPDX-License-Identifier: Apache-2.0
// Questions that one leader has passed on: which children still have to answer, and the merged
// answers of the others. No sockets, no clock, no threads.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// Merges `more`, an answer about the same names.
void merge(StallAnswer& into, StallAnswer&& more);

/// Thread: owner.
class StallInquiries {
 public:
  struct Inquiry {
    StallQuestion question;
    StallAnswer answer;
    std::uint64_t silent = 0;  ///< Bits of links that have not answered.
    TimePoint until;
  };

  /// At the root: removes names that were asked about recently, because several hosts see the same
  /// stall. False if no name is left.
  bool admit(StallQuestion& question, TimePoint now);

  /// At the root: the number of the next question.
  std::uint32_t next_number() { return ++number_; }

  void open(Inquiry&& inquiry) { open_.push_back(std::move(inquiry)); }

  /// An answer to a question that is no longer open is dropped.
  void take(std::size_t link, StallAnswer&& answer);

  /// Nothing more comes over this link.
  void forget(std::size_t link);

  /// Appends to `out` the inquiries that all children have answered, or whose time is over.
  void take_finished(TimePoint now, std::vector<Inquiry>& out);

  /// When take_finished() finds more without an answer.
  TimePoint next_time() const;

 private:
  std::vector<Inquiry> open_;
  std::unordered_map<std::string, TimePoint> asked_;  ///< By set and name.
  std::uint32_t number_ = 0;
};

}  // namespace horo::runtime::tree
