// SPDX-License-Identifier: Apache-2.0
// Ranks that have connected wait for the others, and leave nothing in the store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::runtime {

/// The job's store, as far as ranks need it to wait for each other. Thread, Blocks, Fails: as
/// kv::Client.
class ArrivalStore {
 public:
  virtual ~ArrivalStore() = default;
  virtual Status set(std::string_view key, std::string_view value, Deadline deadline) = 0;
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
  virtual Result<std::int64_t> add(std::string_view key, std::int64_t delta, Deadline deadline) = 0;
  virtual Result<std::int64_t> erase(std::span<const std::string> keys, Deadline deadline) = 0;
};

/// A rank that has connected.
struct ConnectedRank {
  std::string name;               ///< The set's; different for every set and epoch.
  int ranks = 1;                  ///< As many as the set has.
  std::vector<std::string> keys;  ///< This rank has set them in the store.
  Duration start_timeout{};
};

/// Returns once all ranks have connected: a rank that left earlier, as a program does that only
/// asks for its rank, would end what the others still use: their connections, or the store, where
/// rank 0 serves it. Erases the keys of this rank, and the last rank those of all, so that any
/// number of sets and epochs fits into the store. Fails: timed_out, and as the store.
Status await_all(ArrivalStore& store, const ConnectedRank& rank);

}  // namespace horo::runtime
