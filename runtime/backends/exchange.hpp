// SPDX-License-Identifier: Apache-2.0
// A rank's place as another launcher (mpirun) knows it, and an exchange of a few bytes between the
// ranks before they have connections of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::runtime {

/// Thread: the one that made it. Blocks: until all ranks have called the same.
/// Fails: peer_lost, unavailable (the library was shut down).
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  ///< Among the ranks that share this one's memory.
  virtual int local_size() const = 0;
  /// Returns the argument of rank 0; the argument of the other ranks is ignored.
  virtual Result<std::string> broadcast(std::string_view from_rank_0) = 0;
  /// Returns the arguments of all ranks, by rank.
  virtual Result<std::vector<std::string>> gather(std::string_view mine) = 0;
};

}  // namespace horo::runtime
