// SPDX-License-Identifier: Apache-2.0
// The sockets of one leader: connects to the parent, accepts the children, and carries frames
// between their channels and the leader.
#pragma once

#include <cstdint>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/kv/address.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "runtime/tree/connections/leader_listener.hpp"
#include "runtime/tree/connections/link_facts.hpp"
#include "runtime/tree/connections/sealed_channel.hpp"
#include "runtime/tree/leader/leader.hpp"

namespace horo::runtime::tree {

struct LeaderServiceParams {
  LeaderParams leader;
  std::vector<HostRanks> hosts;
  kv::Address parent;  ///< Where the parent listens; unused at the root.
  kv::Secret secret{};
  std::uint32_t version = kVersion;  ///< Another only in tests.
  kv::Encryption encryption = kv::Encryption::off;
};

/// Thread: one at a time. No function blocks but connect_parent().
class LeaderConnections final : public Outbox {
 public:
  /// `params` and `leader` outlive it; `leader` is used only after the constructor.
  LeaderConnections(const LeaderServiceParams& params, Leader& leader, LeaderListener listener);

  /// A connection to the parent exists, or is being made.
  bool has_parent() const { return parent_ != nullptr; }

  /// Blocks: until `deadline`.
  Status connect_parent(const Deadline& deadline);

  /// No further child is accepted.
  void stop_listening() { listener_.socket.reset(); }

  /// Why a connection was refused: the last reason that is worth telling.
  const Error& refusal() const { return refusal_; }

  /// Appends what to poll for. Connections that are added later come behind.
  void add_to(std::vector<pollfd>& entries) const;

  /// Handles what poll() found in the entries that add_to() appended.
  void handle(const pollfd* first, std::size_t count);

  /// Sends as much as the sockets take now.
  void flush();

  /// Something is left to send to a neighbour.
  bool has_output() const;

  void close_all();

  /// Describes the slowest connection.
  LinkFacts links() const;

  void send(std::size_t link, std::string payload) override;

 private:
  /// handshake -> greeted (our hello is sent) -> linked (the leader has taken the other's hello).
  /// Any of them -> dead (its socket is closed by the next sweep()).
  enum class State { handshake, greeted, linked, dead };

  struct Connection {
    Connection(UniqueFd fd, SealedChannel&& bytes, TimePoint since)
        : socket(std::move(fd)), channel(std::move(bytes)), made(since) {}

    UniqueFd socket;
    SealedChannel channel;
    TimePoint made;
    State state = State::handshake;
    std::size_t link = 0;  ///< Once linked.
  };

  void accept_all();
  void read(Connection& connection);
  void take_payloads(Connection& connection);
  void take(Connection& connection, const std::string& payload);
  void write(Connection& connection);
  void drop(Connection& connection, const Error& why);
  void sweep();

  const LeaderServiceParams& params_;
  Leader& leader_;
  const kv::Secret key_;
  LeaderListener listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> by_link_;
  const Connection* parent_ = nullptr;
  Error refusal_;
};

}  // namespace horo::runtime::tree
