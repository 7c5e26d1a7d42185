// SPDX-License-Identifier: Apache-2.0
// A store through which the ranks of a set exchange a few bytes while they connect.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "base/kv/client.hpp"
#include "base/result.hpp"

namespace horo::runtime {

/// Thread: one at a time. Blocks: until the deadline at most.
/// Fails: timed_out (names the key), and as the store itself.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status set(std::string_view key, std::string_view value, Deadline deadline) = 0;
  /// Returns the value as soon as a rank has set it.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
};

/// The job's key-value server. The client outlives it.
class KvRendezvousStore final : public RendezvousStore {
 public:
  explicit KvRendezvousStore(kv::Client& client) : client_(client) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    return client_.set(key, value, deadline);
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return client_.get(key, deadline);
  }

 private:
  kv::Client& client_;
};

}  // namespace horo::runtime
