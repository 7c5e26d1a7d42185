// SPDX-License-Identifier: Apache-2.0
// Questions about stalled tensors at one leader: a question goes up to the root, from there down to
// every host with members, and the answers come back, merged.
#pragma once

#include <optional>

#include "runtime/tree/agreement/host_log.hpp"
#include "runtime/tree/leader/leader_links.hpp"
#include "runtime/tree/leader/leader_sets.hpp"
#include "runtime/tree/leader/stall_inquiries.hpp"

namespace horo::runtime::tree {

/// Thread: owner.
class StallRouter {
 public:
  /// How long the root waits for the answers of all hosts.
  static constexpr std::uint32_t kRootTimeoutMs = 4000;

  StallRouter(const LeaderContext& context, LeaderLinks& links, const LeaderSets& sets,
              HostState& state)
      : context_(context), links_(links), sets_(sets), state_(state) {}

  /// A question from this host or a child: goes on to the root, which gives it a number.
  void ask(StallQuestion&& question, TimePoint now);

  /// A question with a number: examines this host and asks the children that have members.
  void spread(StallQuestion&& question, TimePoint now);

  void take_answer(std::size_t link, StallAnswer&& answer) {
    inquiries_.take(link, std::move(answer));
  }

  /// Nothing more comes over this link.
  void forget(std::size_t link) { inquiries_.forget(link); }

  /// Sends the finished answers up. At the root: shows them to the host's examiner; returns the
  /// loss that ends the job, if there is one.
  std::optional<Loss> conclude(TimePoint now);

  TimePoint next_time() const { return inquiries_.next_time(); }

 private:
  StallAnswer examine(const RankRanges& members, const StallQuestion& question) const;
  void add_silent_children(StallInquiries::Inquiry& inquiry) const;
  void leave_out_agreed(StallInquiries::Inquiry& inquiry, TimePoint now) const;

  const LeaderContext& context_;
  LeaderLinks& links_;
  const LeaderSets& sets_;
  HostState& state_;
  StallInquiries inquiries_;
};

}  // namespace horo::runtime::tree
