// SPDX-License-Identifier: Apache-2.0
// One host's leader: between its host's logs, its children and its parent in the tree; the root of
// the tree agrees on the entries. Frames and the time come in, frames go out. No sockets, no clock,
// no threads: jobs and simulations run this same code.
//
// docs/design/tree.md tells the protocol.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/coordinator/tree/agreement.hpp"
#include "runtime/coordinator/tree/host_log.hpp"
#include "runtime/coordinator/tree/inquiries.hpp"
#include "runtime/coordinator/tree/relay.hpp"
#include "runtime/coordinator/tree/topology.hpp"

namespace horo::runtime::tree {

struct LeaderParams {
  int host = 0;
  int radix = 16;
  Epoch epoch{1};
  Duration heartbeat_timeout = std::chrono::seconds(5);
  CutRules rules;
  std::string settings{};  ///< What moves the bytes, the same on all hosts.
};

/// Where frames go. Links count from 0, the parent (the root has none), 1 + i is the i-th child.
class Outbox {
 public:
  Outbox() = default;
  virtual ~Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  virtual void send(std::size_t link, std::string payload) = 0;
};

struct LeaderCounters {
  std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0, bytes_received = 0,
                stale_frames = 0;
};

/// Thread: owner.
class Leader {
 public:
  static constexpr std::size_t kParent = 0;
  static constexpr std::uint32_t kRootPatienceMs = 4000;  ///< With hosts that have to answer.

  /// `hosts` outlives the leader and is good for validate(). `state` and `outbox` outlive it too.
  Leader(const LeaderParams& params, const std::vector<HostRanks>& hosts, HostState& state,
         Outbox& outbox);

  const Place& place() const { return place_; }

  // -- Connections ------------------------------------------------------------------------------

  /// The first payload on every connection.
  std::string hello() const;

  /// The link that a connection is, by its first payload; it is in use from now on. Fails:
  /// protocol (no hello, another job, not a neighbour, connected before), cancelled (another
  /// epoch).
  Result<std::size_t> greet(BytesView payload, TimePoint now);

  /// Parent and all children are there.
  bool connected() const;

  /// Hosts of the neighbours that have not come.
  std::string absent() const;

  // -- Process sets -----------------------------------------------------------------------------

  /// Before anybody here can submit to it; on every host, also without members. `log` is null
  /// where there are none, else it outlives the set.
  void add_set(SetId set, const RankRanges& members, HostLog* log, TimePoint now);

  /// When no member submits any more; frames that are under way are dropped.
  void remove_set(SetId set);

  // -- Events -----------------------------------------------------------------------------------

  void on_frame(std::size_t link, BytesView payload, TimePoint now);

  /// The connection has ended.
  void on_closed(std::size_t link, TimePoint now);

  /// Something may be new on this host: tensors, room, a loss, ranks that join or leave.
  void on_news(TimePoint now);

  /// Time has passed.
  void on_time(TimePoint now);

  /// Asks all hosts of a set what keeps some of its tensors; the root's host hears the answer.
  void ask(Question&& question, TimePoint now);

  /// When on_time() has something to do; TimePoint::max(): never.
  TimePoint next_time() const;

  /// Says goodbye to the neighbours: nobody here submits any more, and what is left is not lost.
  void leave();

  /// The job is over, for this reason.
  const std::optional<Loss>& loss() const { return loss_; }

  /// What a neighbour or this host did that makes no sense; empty: nothing.
  const std::string& fault() const { return fault_; }

  const LeaderCounters& counters() const { return counters_; }

 private:
  enum class LinkState { absent, open, closing, closed };

  struct Link {
    int host = 0;
    RankRanges ranks;  ///< Of the child's subtree; of the parent: its host's.
    LinkState state = LinkState::absent;
    TimePoint sent{};
    TimePoint heard{};
    TimePoint closed{};  ///< state closing: when the connection ended.
    std::vector<std::string> backlog;
  };

  struct Set {
    RankRanges members;
    std::unique_ptr<Relay> relay;
    std::unique_ptr<Agreement> agreement;  ///< At the root.
    bool paces = false;      ///< Its entries count as run when this host has run them.
    std::uint64_t told = 0;  ///< Entries that this host has told the root to have run.
  };

  struct Early {
    std::size_t link = 0;
    std::string payload;
  };

  bool is_root() const { return place_.parent < 0; }

  Duration heartbeat() const;
  bool concerns(const Set& set, std::size_t link) const;

  Status receive(std::size_t link, Envelope&& envelope, BytesView payload);
  Status receive_about(SetId id, std::size_t link, Frame&& frame, BytesView payload);
  void send(std::size_t link, const Frame& frame);
  void send_raw(std::size_t link, std::string payload);

  void look();
  void move(SetId id, Set& set);
  Status agree(Set& set, News&& news);
  void tell(SetId id, Set& set, News&& news);
  Status hand_down(Set& set, const LogEntry& entry, BytesView payload);
  void depart(std::size_t link);
  void orphan();

  Answer examine(const Set& set, const Question& question);
  void raise(Question&& question);
  void spread(Question&& question);
  void blame_silence(Inquiries::Inquiry& inquiry);
  void leave_out_agreed(Inquiries::Inquiry& inquiry);
  void conclude();

  void blame(std::size_t link, LossCause cause, std::uint32_t detail);
  void fail_here(const Error& error);
  void report(const Loss& loss);
  void decide(const Loss& loss);

  const LeaderParams params_;
  const std::vector<HostRanks>& hosts_;
  const std::uint64_t fingerprint_;
  const Place place_;
  HostState& state_;
  Outbox& outbox_;

  std::vector<Link> links_;  ///< Index 0 stays closed at the root.
  std::map<SetId, Set> sets_;
  std::set<SetId> removed_;
  std::vector<Early> early_;  ///< Frames of sets that are not known here yet.
  std::size_t early_bytes_ = 0;
  Inquiries inquiries_;
  std::string fault_;
  std::optional<Loss> reported_;
  std::optional<Loss> loss_;
  bool left_ = false;
  TimePoint now_{};
  LeaderCounters counters_;
};

}  // namespace horo::runtime::tree
