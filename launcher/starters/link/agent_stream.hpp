// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/loop/loop.hpp"
#include "launcher/protocol/heartbeat_timer.hpp"
#include "launcher/protocol/message_stream.hpp"
#include "launcher/starters/link/carrier.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

/// The messages to and from one agent: the greeting, heartbeats, and the end of the stream. A
/// handler may drop the last reference to it. Thread: the loop's.
///
///   opening -> greeting -> talking -> closed      any state may go to closed
class AgentStream : public std::enable_shared_from_this<AgentStream> {
 public:
  struct Handlers {
    Task on_greeted;
    std::function<void(const protocol::Message&)> on_message;  ///< After the hello.
    Task on_end;                          ///< The agent and its guard have closed the stream.
    std::function<void(Error)> on_fault;  ///< It cannot be used, or the agent sent nonsense.
    Task on_silence;                      ///< The agent's host has sent nothing for too long.
  };

  /// `silence`: how long another host may send nothing; 0: for ever.
  AgentStream(Loop& loop, Duration silence, Handlers handlers)
      : loop_(loop), silence_(silence), handlers_(std::move(handlers)) {}

  /// Greets the agent over the carrier's stream. False: it is not wanted any more, or was refused.
  bool open(OpenedStream opened);
  /// Nothing happens once it is closed.
  void send(const protocol::Message& message);
  /// No handler is called from now on, except for the one that may be running.
  void close();

  bool is_opening() const { return stage_ == Stage::opening; }

  bool is_greeting() const { return stage_ == Stage::greeting; }

  bool is_talking() const { return stage_ == Stage::talking; }

  bool is_closed() const { return stage_ == Stage::closed; }

  /// The facts that the carrier has found on the way to the agent.
  const OpenedStream& opened() const { return opened_; }

  bool is_remote() const { return opened_.place != AgentPlace::this_machine; }

  /// A host that is silent is not lost any more.
  void stop_watching() { heartbeat_.reset(); }

  /// The stream may begin with the output of a shell or of another program: ": line; line". Some,
  /// such as nologin, give no other reason for their end. Empty once the agent's hello has come.
  std::string stray_output() const { return stray_.text(); }

  /// Lets the next login begin.
  void give_login_back() { opened_.login_slot.reset(); }

 private:
  enum class Stage : std::uint8_t { opening, greeting, talking, closed };

  Result<std::unique_ptr<protocol::MessageStream>> open_messages();
  void receive(const protocol::Message& message);
  Status take_hello(const protocol::Message& message);
  void watch_silence();
  void end(const Status& status);

  Loop& loop_;
  const Duration silence_;
  const Handlers handlers_;
  Stage stage_ = Stage::opening;
  OutputTail stray_;
  OpenedStream opened_;
  std::unique_ptr<protocol::MessageStream> messages_;
  std::optional<HeartbeatTimer> heartbeat_;  ///< For a host that may vanish.
};

}  // namespace horo::launcher
