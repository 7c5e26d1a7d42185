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
  /// `wanted`: the user's choice, nothing: by the number of cores. `shares_cores`: the host has
  /// more ranks than cores that they may run on.
  static SpinPolicy choose(std::optional<Duration> wanted, bool shares_cores);

  /// How long a caller that drives the rank looks. `bytes_in_flight`: what the entries that have
  /// begun still move. `slow_turns`: to yield has lately cost a whole time slice.
  Duration of_caller(std::uint64_t bytes_in_flight, bool slow_turns) const;

  /// How long the runtime's own thread looks.
  Duration of_runtime_thread() const;

  /// How long a caller looks for the progress token.
  Duration of_token() const;

  /// A caller that looks offers its core to the other ranks.
  bool yields() const { return mode_ == Mode::shared_cores; }

 private:
  enum class Mode : std::uint8_t {
    fixed,         ///< The user has set the time.
    own_core,      ///< Every rank has a core for itself.
    shared_cores,  ///< There are more ranks than cores.
  };

  SpinPolicy(Mode mode, Duration spin) : mode_(mode), spin_(spin) {}

  Mode mode_;
  Duration spin_;
};

}  // namespace horo::runtime
