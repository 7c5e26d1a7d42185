// SPDX-License-Identifier: Apache-2.0
// Questions on their way through one leader: which neighbours have still to answer, and what the
// others said. No sockets, no clock, no threads.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "runtime/coordinator/tree/wire.hpp"

namespace horo::runtime::tree {

/// `more` is said of the same names.
void merge(Answer& into, Answer&& more);

/// Thread: owner.
class Inquiries {
 public:
  struct Inquiry {
    Question question;
    Answer answer;
    std::uint64_t silent = 0;  ///< Bits of links that have not answered.
    TimePoint until;
  };

  /// At the root: leaves out what was asked about lately, since several hosts see the same stall.
  /// False when nothing is left.
  bool admit(Question& question, TimePoint now);

  /// At the root: the next question's.
  std::uint32_t next_number() { return ++number_; }

  void open(Inquiry&& inquiry) { open_.push_back(std::move(inquiry)); }

  /// An answer to a question that is no longer open is dropped.
  void take(std::size_t link, Answer&& answer);

  /// Nothing more comes over this link.
  void forget(std::size_t link);

  /// Appends to `out` those that everybody has answered, or that have waited long enough.
  void take_finished(TimePoint now, std::vector<Inquiry>& out);

  /// When take_finished() finds more without an answer.
  TimePoint next_time() const;

 private:
  std::vector<Inquiry> open_;
  std::unordered_map<std::string, TimePoint> asked_;  ///< By set and name.
  std::uint32_t number_ = 0;
};

}  // namespace horo::runtime::tree
