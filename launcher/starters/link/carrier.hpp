// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "base/result.hpp"
#include "launcher/protocol/message_stream.hpp"

namespace horo::launcher {

/// Where an agent is, as seen from this process.
enum class AgentPlace : std::uint8_t {
  this_machine,  ///< The kernel tells when it ends.
  other_host,    ///< Its host may vanish: this process has to notice a silence.
  behind_agent,  ///< Another agent relays its frames and watches over it.
};

/// The stream to an agent, and what was found out on the way to it.
struct OpenedStream {
  using OpenMessages = std::function<Result<std::unique_ptr<protocol::MessageStream>>(
      protocol::MessageStream::Handlers)>;

  int descriptor = -1;         ///< Both ways, owned by the carrier; -1: use `open_messages`.
  OpenMessages open_messages;  ///< Empty where there is a descriptor.
  AgentPlace place = AgentPlace::this_machine;
  std::string peer_address;          ///< The other host's address, a number; empty: not known.
  std::string launcher_address;      ///< This machine's address for that host; empty: not remote.
  std::shared_ptr<void> login_slot;  ///< To be released when the agent has greeted.
  /// Kills the processes that a lost agent has left, in its control group and outside, where they
  /// have the job's id in their environment. Empty: they are out of reach.
  std::function<void(const std::string& control_group, const std::string& job_id)> end_leftovers;
};

/// The progress of a carrier.
struct CarrierStatus {
  std::string step;       ///< The step that takes time: "connecting to 10.0.0.3:22".
  bool connected = true;  ///< False: `step` still depends on this machine or the network alone.
  int process = 0;        ///< A child of this process that the carrier needs; 0: none.
};

/// Carries the bytes between this process and one agent: a socket to a child, an ssh channel.
/// Destroying it ends the agent's input. Handlers run from the loop, and may destroy the carrier.
/// Thread: the loop's.
class Carrier {
 public:
  struct Handlers {
    /// The stream is there. Once.
    std::function<void(OpenedStream stream)> on_open;
    /// The agent has ended or is out of reach. `why` counts if the agent has given no reason
    /// itself. Once, also in place of on_open.
    std::function<void(Error why)> on_gone;
  };

  virtual ~Carrier() = default;
  /// Fails: as the way of starting does, when that is known at once; then no handler is called.
  virtual Status open(Handlers handlers) = 0;
  /// Ends the agent's input; its end, and on_gone, follow.
  virtual void hang_up() = 0;
  /// Kills what does not answer, as far as it is in reach; on_gone follows.
  virtual void give_up() = 0;
  virtual CarrierStatus status() const = 0;
};

}  // namespace horo::launcher
