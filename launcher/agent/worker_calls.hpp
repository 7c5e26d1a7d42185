// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "launcher/agent/call_gathering.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

/// The agent's part in the membership of an elastic job: a key-value server on the loopback address
/// at which the workers of this host ask for their places. It passes their calls on together, and
/// the launcher's answers back. A process without the job's secret can say nothing here.
/// Thread: the loop's.
class WorkerCalls {
 public:
  using Send = std::function<void(const protocol::Called&)>;

  /// `loop` outlives it. Fails: as kv::Server::start.
  static Result<std::unique_ptr<WorkerCalls>> open(Loop& loop, const kv::Secret& secret, Send send);

  /// host:port, see WorkerIdentity::membership.
  std::string address() const { return server_->address(); }

  /// Tells which workers live: the agent's reports, before they are sent.
  void note(const protocol::Message& report);

  void take(const protocol::Answered& order);
  void take(const protocol::EndMeeting& order);

 private:
  WorkerCalls(Loop& loop, Send send) : loop_(loop), send_(std::move(send)) {}

  void called(std::string_view key, std::string_view value);
  void refuse(const elastic::MembershipCall& call);
  void ended(Rank worker);
  void send_when_due();
  void flush();
  void put(const elastic::CallAnswer& answer);
  void store(const std::string& key, std::string value);

  Loop& loop_;
  const Send send_;
  std::unique_ptr<kv::Server> server_;
  CallGathering gathering_;
  Subscription flush_timer_;                      ///< While calls wait for further ones.
  std::map<std::uint32_t, std::string> answers_;  ///< By worker: the key of its last answer.
  std::deque<std::string>
      refusals_;  ///< Keys of the last answers to processes that are no workers.
};

}  // namespace horo::launcher
