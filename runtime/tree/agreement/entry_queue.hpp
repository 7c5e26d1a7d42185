// SPDX-License-Identifier: Apache-2.0
// Entries of one process set that have come down and wait for room in their host's log.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime::tree {

/// A tensor that no rank here has submitted. The host gets its signature when the entry has room.
struct ForeignTensor {
  std::size_t position = 0;  ///< In the entry.
  std::string name;
  Signature signature;
};

/// An entry in this host's numbers.
struct QueuedEntry {
  LogKind kind = LogKind::work;
  std::vector<TensorId> ids;
  std::vector<ForeignTensor> foreign;
  std::vector<std::uint64_t> rows;
  std::vector<std::string> inputs;
  std::string text;
  RankRanges ranks;
  Tuning tuning;
  bool joined = false;      ///< As in LogEntry.
  std::uint64_t place = 0;  ///< As in HostEntry.
};

/// Thread: owner.
class EntryQueue {
 public:
  /// `host` outlives the queue.
  explicit EntryQueue(HostLog& host) : host_(host) {}

  /// Fails: as the host's log.
  Status push(QueuedEntry&& entry);

  /// Moves entries into the host's log, as far as there is room. Fails: as the host's log.
  Status publish();

 private:
  Result<bool> define_foreign(QueuedEntry& entry);
  std::uint64_t next_place() const;

  HostLog& host_;
  std::deque<QueuedEntry> waiting_;
};

}  // namespace horo::runtime::tree
