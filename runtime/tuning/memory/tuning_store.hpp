// SPDX-License-Identifier: Apache-2.0
// A user's file of results of searches. Several jobs may use it at once: writers hold a lock, and
// replace the file as a whole, so a reader finds the old file or the new one. A damaged file is put
// aside with a warning, and the store begins anew.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/tuning/memory/stored_result.hpp"

namespace horo::runtime::tuning {

/// $XDG_STATE_HOME/horo, or ~/.local/state/horo. `variable` is std::getenv, or a fake of it. Fails:
/// not_found (neither XDG_STATE_HOME nor HOME is set).
Result<std::string> state_folder(const std::function<const char*(const char*)>& variable);

/// Thread: any. Blocks: on the file system, and up to two seconds for the lock.
class TuningStore {
 public:
  static constexpr std::size_t kMostResults = 1000;  ///< Beyond that, the oldest is forgotten.

  /// The folder is made when something is stored.
  explicit TuningStore(std::string folder);

  /// All results, the oldest first. Without a file, there are none. Fails: io, unsupported (the
  /// file is of a later version).
  Result<std::vector<StoredResult>> list() const;

  /// Fails: as list.
  Result<std::optional<StoredResult>> find(const JobKey& key) const;

  /// Stores a result in place of an older one of the same key. Fails: as list; timed_out (another
  /// process holds the lock).
  Status remember(const StoredResult& result);

  /// Removes the results for which `which` is true, and returns how many these were. Fails: as
  /// remember.
  Result<std::size_t> forget(const std::function<bool(const StoredResult&)>& which);

  const std::string& path() const { return path_; }

 private:
  using Change = std::function<void(std::vector<StoredResult>&)>;

  Result<std::vector<StoredResult>> read_or_put_aside() const;
  Status put_aside(const std::string& reason) const;
  Status change(const Change& change);
  Status replace(const std::vector<StoredResult>& results) const;

  std::string folder_;
  std::string path_;
};

}  // namespace horo::runtime::tuning
