// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// The launcher's connections through one agent to the agents behind it. Stands between the link of
/// the relaying agent, which has the stream, and the carriers whose bytes go through it. Thread:
/// the loop's.
class AgentRelay {
 public:
  /// `host`: the relaying agent's, for messages.
  explicit AgentRelay(std::string host) : host_(std::move(host)) {}

  // For the link.

  using Send = std::function<void(const protocol::Message&)>;

  /// The relaying agent has greeted.
  void open(Send send);
  // Its messages about other hosts' agents, and from them.
  void take(const protocol::Reached& reached);
  void take(const protocol::Carry& carry);
  void take(const protocol::Gone& gone);
  void take(const protocol::Step& step);
  /// The relaying agent is gone, and so are those behind it.
  void close();

  /// As close(), but without calling handlers: the whole job is being dropped.
  void abandon();

  /// The number of hosts that are reached, or are to be reached, through it.
  std::size_t users() const { return routes_.size(); }

  /// Calls `task` when no host is reached through it any more.
  void on_idle(Task task) { idle_ = std::move(task); }

  // For carriers.

  /// One host behind the relaying agent.
  struct Route {
    protocol::Reach reach;
    std::function<void(const std::string& address)> on_reached;
    std::function<void(std::string_view frame)> on_frame;
    std::function<void(const Error& why)> on_gone;  ///< The last; the route is forgotten before.
    std::string step;
  };

  /// Asks for `route.reach.host` as soon as the relaying agent has greeted.
  void add(std::shared_ptr<Route> route);
  void send(const protocol::Message& message);
  /// The carrier is gone: nothing more is told of this host.
  void forget(std::uint32_t host);

  bool is_open() const { return send_ != nullptr; }

  const std::string& host() const { return host_; }

 private:
  std::shared_ptr<Route> find(std::uint32_t host) const;
  void report_if_idle();

  const std::string host_;
  Send send_;
  Task idle_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Route>> routes_;
};

/// Goes through `relay`; `reach` says where to. The stream opens with the agent's hello.
std::unique_ptr<Carrier> make_relay_carrier(Loop& loop, std::shared_ptr<AgentRelay> relay,
                                            protocol::Reach reach);

}  // namespace horo::launcher
