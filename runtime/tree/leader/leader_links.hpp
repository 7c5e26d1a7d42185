// SPDX-License-Identifier: Apache-2.0
// A leader's links to its parent and its children, without their sockets: which are open, what
// waits for one that is not open yet, and when each was heard last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/tree/frames/frames.hpp"
#include "runtime/tree/leader/leader_context.hpp"

namespace horo::runtime::tree {

/// Where frames go. Links count from 0: the parent (which the root does not have); 1 + i is the
/// i-th child.
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
class LeaderLinks {
 public:
  static constexpr std::size_t kParent = 0;

  /// A link that is lost, and why.
  struct LostLink {
    std::size_t link = 0;
    LossCause cause = LossCause::vanished;
    std::uint32_t detail = 0;  ///< Milliseconds of silence, if `cause` is host_lost.
  };

  LeaderLinks(const LeaderContext& context, Outbox& outbox);

  /// The first payload on every connection.
  std::string hello() const;

  /// Opens the link that a connection is, by its first payload, and sends what waited for it.
  /// Fails: protocol (no hello, another job, not a neighbour, connected before), cancelled (another
  /// epoch).
  Result<std::size_t> greet(BytesView payload, TimePoint now);

  /// No link is absent.
  bool connected() const;

  /// Names of the neighbours that have not connected.
  std::string absent() const;

  std::size_t count() const { return links_.size(); }

  bool is_open(std::size_t link) const { return links_[link].state == LinkState::open; }

  bool is_closed(std::size_t link) const { return links_[link].state == LinkState::closed; }

  /// The ranks of a child's subtree, or of the parent's host.
  const RankRanges& ranks(std::size_t link) const { return links_[link].ranks; }

  const HostRanks& host(std::size_t link) const;

  void send(std::size_t link, const Frame& frame, TimePoint now);

  /// Sends an encoded frame. Keeps it while the link is absent; drops it once the link has ended.
  void send_raw(std::size_t link, std::string payload, TimePoint now);

  /// A payload has arrived.
  void on_payload(std::size_t link, std::size_t bytes, TimePoint now);

  /// The connection has ended. An open link is lost after a grace time, because whatever watches
  /// the process on the other side poisons our boards within it, and knows the reason.
  void on_ended(std::size_t link, TimePoint now);

  /// Nothing more is sent or expected.
  void close(std::size_t link) { links_[link].state = LinkState::closed; }

  /// Closes a link that is lost or sends what is due on it; the loss, if there is one.
  std::optional<LostLink> check(std::size_t link, TimePoint now);

  /// When check() has something to do; TimePoint::max(): never.
  TimePoint next_time() const;

  const LeaderCounters& counters() const { return counters_; }

  void count_stale_frame() { ++counters_.stale_frames; }

 private:
  /// absent -> open (greet) -> ending (on_ended) -> closed (close). A link that is not open goes
  /// to closed directly.
  enum class LinkState { absent, open, ending, closed };

  struct Link {
    int host = 0;
    RankRanges ranks;
    LinkState state = LinkState::absent;
    TimePoint sent{};
    TimePoint heard{};
    TimePoint ended{};                 ///< Valid while ending.
    std::vector<std::string> backlog;  ///< Payloads that wait while absent.
  };

  Duration heartbeat() const;

  const LeaderContext& context_;
  const std::uint64_t fingerprint_;
  Outbox& outbox_;
  std::vector<Link> links_;  ///< Index 0 stays closed at the root.
  LeaderCounters counters_;
};

}  // namespace horo::runtime::tree
