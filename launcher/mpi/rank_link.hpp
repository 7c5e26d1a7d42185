// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "launcher/agent/channel.hpp"

namespace horo::launcher {

/// The launcher's end of an agent that mpirun has started to own one rank. Thread: the loop's.
/// Destroying it ends the agent's input: the agent kills what is left of its rank and ends, which
/// is what tells mpirun that the rank has.
class RankLink {
 public:
  struct Handlers {
    std::function<void(const protocol::Message&)> on_message;  ///< After the greeting.
    /// Nothing follows. The agent is gone, or spoke nonsense; not called for an end that was asked
    /// for.
    std::function<void(const Error&)> on_lost;
  };

  /// Takes `connection` over and sends what the agent is to start. Fails: unavailable.
  static Result<std::unique_ptr<RankLink>> open(Loop& loop, UniqueFd connection,
                                                const AgentSpec& spec, Handlers handlers);

  /// Nothing happens once the agent is gone.
  void send(const protocol::Message& message);

 private:
  RankLink(UniqueFd connection, Handlers handlers)
      : connection_(std::move(connection)), handlers_(std::move(handlers)) {}

  void receive(const protocol::Message& message);
  void lose(Error error);

  const UniqueFd connection_;
  const Handlers handlers_;
  std::unique_ptr<protocol::Channel> channel_;
  bool greeted_ = false;
};

}  // namespace horo::launcher
