// SPDX-License-Identifier: Apache-2.0
// The leader of one host, between the logs of its host, its children and its parent in the tree;
// the leader of host 0 is the root, which makes the entries. Frames and times come in, frames go
// out: no sockets, no clock, no threads. Jobs and simulations run this same code.
//
// docs/design/tree.md has the protocol.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tree/agreement/host_log.hpp"
#include "runtime/tree/leader/leader_context.hpp"
#include "runtime/tree/leader/leader_links.hpp"
#include "runtime/tree/leader/leader_sets.hpp"
#include "runtime/tree/leader/stall_router.hpp"

namespace horo::runtime::tree {

/// Thread: owner.
class Leader {
 public:
  static constexpr std::size_t kParent = LeaderLinks::kParent;

  /// `hosts` has passed validate(). `hosts`, `state` and `outbox` outlive the leader.
  Leader(const LeaderParams& params, const std::vector<HostRanks>& hosts, HostState& state,
         Outbox& outbox);

  const TreePlace& place() const { return context_.place; }

  // -- Connections ------------------------------------------------------------------------------

  /// As LeaderLinks::hello().
  std::string hello() const { return links_.hello(); }

  /// As LeaderLinks::greet().
  Result<std::size_t> greet(BytesView payload, TimePoint now) { return links_.greet(payload, now); }

  /// The parent and all children are connected.
  bool connected() const { return links_.connected(); }

  /// Hosts of the neighbours that have not connected.
  std::string absent() const { return links_.absent(); }

  // -- Process sets -----------------------------------------------------------------------------

  /// Before any rank here can submit to it; on every host, also without members. `log` is null
  /// without members here, else it outlives the set.
  void add_set(SetId set, const RankRanges& members, HostLog* log, TimePoint now);

  /// When no member submits any more; frames that are still on their way are dropped.
  void remove_set(SetId set) { sets_.remove(set); }

  // -- Events -----------------------------------------------------------------------------------

  void on_frame(std::size_t link, BytesView payload, TimePoint now);

  /// The connection has ended.
  void on_closed(std::size_t link, TimePoint now);

  /// Something may be new on this host: tensors, room, a loss, ranks that join or leave.
  void on_news(TimePoint now);

  /// Time has passed.
  void on_time(TimePoint now);

  /// Asks all hosts of a set why some of its tensors do not complete. The examiner of the root's
  /// host hears the answer.
  void ask(StallQuestion&& question, TimePoint now);

  /// At the root: all members of a set change their tuning between the same two entries, which are
  /// the next that are made. Does nothing elsewhere.
  void change_tuning(SetId set, const Tuning& tuning, TimePoint now);

  /// When on_time() has something to do; TimePoint::max(): never.
  TimePoint next_time() const;

  /// Says goodbye to the neighbours: no rank here submits any more, and none is lost.
  void leave();

  /// Why the job is over, if it is.
  const std::optional<Loss>& loss() const { return decided_; }

  /// How a neighbour or this host broke the protocol; empty: not at all.
  const std::string& fault() const { return fault_; }

  const LeaderCounters& counters() const { return links_.counters(); }

 private:
  /// running -> reported (a loss was sent to the parent) -> over (the loss is decided: by the root,
  /// or here if there is no parent). running, reported -> left (leave()). running -> over.
  enum class Phase { running, reported, over, left };

  /// Frames are sent and handled.
  bool active() const { return phase_ == Phase::running || phase_ == Phase::reported; }

  Status receive(std::size_t link, Envelope&& envelope, BytesView payload);

  /// One overload for each frame that does not concern a process set's log.
  Status handle(std::size_t link, LeaderHello& hello, BytesView payload);
  Status handle(std::size_t link, Heartbeat& heartbeat, BytesView payload);
  Status handle(std::size_t link, Bye& bye, BytesView payload);
  Status handle(std::size_t link, Loss& loss, BytesView payload);
  Status handle(std::size_t link, StallQuestion& question, BytesView payload);
  Status handle(std::size_t link, StallAnswer& answer, BytesView payload);
  Status handle(std::size_t link, ShowArrivals& show, BytesView payload);

  template <typename F>
  Status handle(std::size_t link, F& frame, BytesView payload) {
    const auto status = sets_.receive(link, frame, payload, now_);
    report_faults();
    return status;
  }

  /// Tells the hosts below whether a trace shows which ranks submit last.
  void show_arrivals(bool wanted);
  void conclude();
  void blame(const LeaderLinks::LostLink& lost);
  void report_faults();
  void report(const Loss& loss);
  void decide(const Loss& loss);

  const LeaderContext context_;
  HostState& state_;
  LeaderLinks links_;
  LeaderSets sets_;
  StallRouter stalls_;
  Phase phase_ = Phase::running;
  std::optional<Loss> reported_;  ///< The first loss that this host heard of.
  std::optional<Loss> decided_;   ///< Set when the phase becomes over.
  std::string fault_;
  bool shows_arrivals_ = false;
  TimePoint now_{};
};

}  // namespace horo::runtime::tree
