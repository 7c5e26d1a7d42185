// SPDX-License-Identifier: Apache-2.0
// A user's file of searches that have not ended, which several jobs may use at once (LineFile). A
// job adds its search after each sample, so nothing but the last sample is lost when it is killed.
#pragma once

#include <optional>
#include <string>

#include "runtime/tuning/memory/line_file.hpp"
#include "runtime/tuning/memory/unfinished_search.hpp"

namespace horo::runtime::tuning {

/// Thread: any. Blocks: on the file system, and up to two seconds for the lock.
class UnfinishedStore {
 public:
  static constexpr std::size_t kMostSearches = 100;  ///< Beyond that, the oldest is forgotten.

  /// The folder is made when something is stored.
  explicit UnfinishedStore(std::string folder);

  /// Fails: io, unsupported (the file is of a later version).
  Result<std::optional<UnfinishedSearch>> find(const JobKey& key) const;

  /// Stores a search in place of an older one of the same key. Fails: as find; timed_out (another
  /// process holds the lock).
  Status remember(const UnfinishedSearch& search);

  /// Removes the search of this key, if there is one. Fails: as remember.
  Status forget(const JobKey& key);

  /// Removes all searches, and returns how many these were. Fails: as remember.
  Result<std::size_t> forget_all();

  const std::string& path() const { return file_.path(); }

 private:
  LineFile file_;
};

}  // namespace horo::runtime::tuning
