// SPDX-License-Identifier: Apache-2.0
// Answers other hosts' questions about stalls, and reports what all hosts have answered.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/sets/set_table.hpp"
#include "runtime/stalls/stall_watch.hpp"
#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime {

/// Owns the lines that are to be written: the tree's thread finds them, and the token's holder
/// writes them, because a reader of standard error may be slow and the tree's thread has heartbeats
/// to send. Thread: any.
class HostStallExaminer final : public tree::StallExaminer {
 public:
  /// All outlive this.
  HostStallExaminer(HostMemory& host, const SetTable& sets, const StallWatch& watch)
      : host_(host), sets_(sets), watch_(watch) {}

  /// This rank answers for its host. Before the first set with members on other hosts.
  void lead(std::string host_name) { host_name_ = std::move(host_name); }

  std::optional<tree::StallAnswer> examine(const tree::StallQuestion& question) override;
  std::optional<tree::Loss> conclude(const tree::StallQuestion& question,
                                     const tree::StallAnswer& answer) override;

  bool has_pending() const { return has_pending_.load(std::memory_order_seq_cst); }

  void write_pending();

 private:
  tree::StallAnswer examine_in(const ProcessSet& set, const tree::StallQuestion& question,
                               TimePoint now) const;
  /// The ranks of this host that hold up an entry under way.
  tree::TensorStall held_up(Board& board, TimePoint now) const;
  void write_later(log::Level level, std::string line);

  HostMemory& host_;
  const SetTable& sets_;
  const StallWatch& watch_;
  std::string host_name_;
  Mutex mutex_;
  std::vector<std::pair<log::Level, std::string>> pending_ HORO_GUARDED_BY(mutex_);
  std::atomic<bool> has_pending_{false};
};

}  // namespace horo::runtime
