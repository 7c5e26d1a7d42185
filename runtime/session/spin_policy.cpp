// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/spin_policy.hpp"

#include <algorithm>

namespace horo::runtime {

namespace {

// With a core for every rank a peer's news are on the way and come within microseconds. With more
// ranks than cores the peer may be waiting for this very core.
constexpr Duration kOnOwnCore = std::chrono::microseconds(50);
constexpr Duration kOnSharedCore = std::chrono::microseconds(3);

// A third of what it takes to fall asleep and to be woken: for so long a rank that shares its core
// offers it to the peers again and again. After a slow turn sleeping is better, because a thread
// that is woken runs before the others.
constexpr Duration kWhileYielding = std::chrono::microseconds(40);

// A turn of another thread that takes a whole time slice.
constexpr Duration kSlowTurn = std::chrono::microseconds(500);

constexpr Duration kRuntimeThread = std::chrono::microseconds(3);
constexpr Duration kToken = std::chrono::microseconds(10);

constexpr std::uint64_t kBytesPerNs = 4;  // The least that a peer moves.
constexpr Duration kLongestShare = std::chrono::milliseconds(1);

}  // namespace

SpinPolicy SpinPolicy::choose(std::optional<Duration> wanted, int ranks_per_core) {
  if (wanted) return {Mode::fixed, *wanted, ranks_per_core};
  return ranks_per_core > 1 ? SpinPolicy(Mode::shared_cores, kOnSharedCore, ranks_per_core)
                            : SpinPolicy(Mode::own_core, kOnOwnCore, ranks_per_core);
}

Duration SpinPolicy::slow_turn() const {
  return kSlowTurn * rounds();
}

Duration SpinPolicy::of_caller(std::uint64_t bytes_in_flight, bool slow_turns) const {
  switch (mode_) {
    case Mode::fixed:
      return spin_;
    case Mode::shared_cores:
      return slow_turns ? spin_ : kWhileYielding * rounds();
    case Mode::own_core:
      break;
  }
  // Peers with cores of their own work on the entries in flight and finish their shares soon: to
  // sleep and be woken takes as long as moving half a megabyte.
  const Duration shares(static_cast<Duration::rep>(bytes_in_flight / kBytesPerNs));
  return spin_ + std::min(shares, kLongestShare);
}

Duration SpinPolicy::of_runtime_thread() const {
  return std::min(spin_, kRuntimeThread);
}

Duration SpinPolicy::of_token() const {
  return std::min(spin_, kToken);
}

}  // namespace horo::runtime
