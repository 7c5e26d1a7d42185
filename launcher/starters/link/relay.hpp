// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "launcher/agent/protocol.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// The launcher's way through one agent to agents that it starts and speaks with for us. Between
/// that agent's link, which has the stream, and the carriers that go through it. Thread: the
/// loop's.
class Relay {
 public:
  /// `host`: who passes on, for messages.
  explicit Relay(std::string host) : host_(std::move(host)) {}

  // For the link.

  using Send = std::function<void(const protocol::Message&)>;

  /// The agent is there.
  void open(Send send);
  /// What it says of others, or for them.
  void take(const protocol::Reached& reached);
  void take(const protocol::Carry& carry);
  void take(const protocol::Gone& gone);
  void take(const protocol::Step& step);
  /// The agent is gone, and so are those behind it.
  void close();

  /// The same when nobody is to hear of it: the whole job is being dropped.
  void abandon();

  /// How many hosts are reached through it, or are to be.
  std::size_t users() const { return ways_.size(); }

  /// `task` is called when nobody is reached through it any more.
  void on_idle(Task task) { idle_ = std::move(task); }

  // For carriers.

  struct Way {
    protocol::Reach reach;
    std::function<void(const std::string& address)> on_reached;
    std::function<void(std::string_view frame)> on_frame;
    std::function<void(const Error& why)> on_gone;  ///< The last; the way is forgotten before.
    std::string step;
  };

  /// Asks for `way.reach.host` as soon as the agent is there.
  void add(std::shared_ptr<Way> way);
  void send(const protocol::Message& message);
  /// Nobody listens any more.
  void forget(std::uint32_t host);

  bool is_open() const { return send_ != nullptr; }

  const std::string& host() const { return host_; }

 private:
  std::shared_ptr<Way> find(std::uint32_t host) const;
  void settle();

  const std::string host_;
  Send send_;
  Task idle_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Way>> ways_;
};

/// Goes through `relay`; `reach` says where to. Opens with the agent's first word.
std::unique_ptr<Carrier> make_relay_carrier(Loop& loop, std::shared_ptr<Relay> relay,
                                            protocol::Reach reach);

}  // namespace horo::launcher
