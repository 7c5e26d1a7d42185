// SPDX-License-Identifier: Apache-2.0
// How long a thread looks for news before it sleeps. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace horo::runtime {

/// Chosen once all ranks of the host are known. Thread: immutable.
class SpinPolicy {
 public:
  /// `wanted`: the user's choice, nothing: by the number of cores. `ranks_per_core`: how many ranks
  /// share a core where they are most; 0: unknown.
  static SpinPolicy choose(std::optional<Duration> wanted, int ranks_per_core);

  /// How long a caller that drives the rank looks. `bytes_in_flight`: what the entries that have
  /// begun still move. `slow_turns`: to yield has lately cost a whole time slice.
  Duration of_caller(std::uint64_t bytes_in_flight, bool slow_turns) const;

  /// How long the runtime's own thread looks.
  Duration of_runtime_thread() const;

  /// How long a caller looks for the progress token.
  Duration of_token() const;

  /// A caller that looks offers its core to the other ranks.
  bool yields() const { return mode_ == Mode::shared_cores; }

  /// The longest time that a yield takes if only ranks share the core. One that takes longer has
  /// given the core to another program for a time slice.
  Duration slow_turn() const;

  /// So many ranks share each core that no rank can be better off than the others.
  bool crowded() const { return ranks_per_core_ >= kCrowd; }

 private:
  enum class Mode : std::uint8_t {
    fixed,         ///< The user has set the time.
    own_core,      ///< Every rank has a core for itself.
    shared_cores,  ///< There are more ranks than cores.
  };

  static constexpr int kCrowd = 16;

  SpinPolicy(Mode mode, Duration spin, int ranks_per_core)
      : mode_(mode), spin_(spin), ranks_per_core_(ranks_per_core) {}

  /// In a crowd, a round of all ranks of a core takes this many times as long as one of two.
  int rounds() const { return crowded() ? ranks_per_core_ / 2 : 1; }

  Mode mode_;
  Duration spin_;
  int ranks_per_core_;
};

}  // namespace horo::runtime
