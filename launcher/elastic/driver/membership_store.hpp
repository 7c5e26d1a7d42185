// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/elastic/membership_messages.hpp"
#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"

namespace horo::launcher {

/// The key-value store of an elastic job, from its start to its end: the ranks of a generation meet
/// through it, and tell when their training goes on. Their calls come through their agents.
/// Thread: the loop's.
class MembershipStore {
 public:
  using ResumedHandler = std::function<void(const elastic::TrainingResumed&)>;

  /// Listens on the loopback address only. `loop` outlives the store. Fails: as kv::Server::start.
  static Result<std::unique_ptr<MembershipStore>> open(Loop& loop, const kv::Secret& secret,
                                                       ResumedHandler on_resumed);

  /// host:port of the store for workers that reach this machine at `address`; empty: those on this
  /// machine. Fails: as kv::Server::listen_also.
  Result<std::string> address_at(const std::string& address);

  /// Erases what the ranks of generations before this one have left behind.
  void clear_before(std::uint64_t generation);

 private:
  explicit MembershipStore(ResumedHandler on_resumed) : on_resumed_(std::move(on_resumed)) {}

  void take_resumed(std::string_view key, std::string_view value) const;

  const ResumedHandler on_resumed_;
  std::unique_ptr<kv::Server> server_;
};

}  // namespace horo::launcher
