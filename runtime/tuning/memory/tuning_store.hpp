// SPDX-License-Identifier: Apache-2.0
// A user's file of results of searches, which several jobs may use at once (LineFile).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/tuning/memory/line_file.hpp"
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

  const std::string& path() const { return file_.path(); }

 private:
  LineFile file_;
};

}  // namespace horo::runtime::tuning
