// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "launcher/protocol/descriptor_stream.hpp"

namespace horo::launcher {

/// The launcher's end of the connection to an agent that dialled in and owns one rank. Destroying
/// it closes the connection: the agent then kills what is left of its rank and exits, which tells
/// the system that started the agent (mpirun, ...) that the rank has ended. Thread: the loop's.
class RankLink {
 public:
  struct Handlers {
    std::function<void(const protocol::Message&)> on_message;  ///< After the greeting.
    /// The last call: the agent is gone, or sent nonsense. Not called after the link's owner has
    /// destroyed it.
    std::function<void(const Error&)> on_lost;
  };

  /// Takes over `connection`, on which all bytes are encrypted, and sends `spec`, which tells the
  /// agent what to start. Fails: unavailable.
  static Result<std::unique_ptr<RankLink>> open(Loop& loop, UniqueFd connection, kv::SealPair seals,
                                                const AgentSpec& spec, Handlers handlers);

  /// Does nothing once the agent is gone.
  void send(const protocol::Message& message);

 private:
  RankLink(UniqueFd connection, Handlers handlers)
      : connection_(std::move(connection)), handlers_(std::move(handlers)) {}

  void receive(const protocol::Message& message);
  void lose(Error error);

  const UniqueFd connection_;
  const Handlers handlers_;
  std::unique_ptr<protocol::DescriptorStream> channel_;
  bool greeted_ = false;
};

}  // namespace horo::launcher
