// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/elastic/membership_messages.hpp"
#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "launcher/elastic/membership_orders.hpp"

namespace horo::launcher {

/// The answer to the call of one of its members.
elastic::MembershipAnswer answer_of(const FormedGeneration& generation,
                                    const GenerationMember& member);

/// The key-value store of an elastic job, from its start to its end: workers meet through it, ask
/// for their place in the next generation, and get their answers. Thread: the loop's.
class MembershipStore {
 public:
  struct Handlers {
    std::function<void(const elastic::MembershipCall&)> on_call;
    std::function<void(const elastic::TrainingResumed&)> on_resumed;
  };

  /// Listens on the loopback address only. `loop` outlives the store. Fails: as kv::Server::start.
  static Result<std::unique_ptr<MembershipStore>> open(Loop& loop, const kv::Secret& secret,
                                                       Handlers handlers);

  /// host:port of the store for workers that reach this machine at `address`; empty: those on this
  /// machine. Fails: as kv::Server::listen_also.
  Result<std::string> address_at(const std::string& address);

  /// Answers the calls of all members.
  void answer(const FormedGeneration& generation);

  /// Answers a call that leads into no generation.
  void turn_away(const TurnedAway& worker, elastic::MembershipKind kind);

  /// Tells ranks that still meet in this generation that they need not wait for each other. Erases
  /// what the ranks of earlier generations have left behind.
  void end_meeting(std::uint64_t generation);

  /// The worker is gone and takes no answer.
  void forget(int worker);

 private:
  explicit MembershipStore(Handlers handlers) : handlers_(std::move(handlers)) {}

  void take_call(std::string_view key, std::string_view value) const;
  void take_resumed(std::string_view key, std::string_view value) const;
  void put(int worker, std::uint32_t attempt, const elastic::MembershipAnswer& answer);

  const Handlers handlers_;
  std::unique_ptr<kv::Server> server_;
  std::unordered_map<int, std::string> answers_;  ///< By worker: the key of its last answer.
};

}  // namespace horo::launcher
