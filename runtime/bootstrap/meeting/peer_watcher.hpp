// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/strong.hpp"

namespace horo::runtime::bootstrap {

/// An agent or all other ranks poison the board of this host when one of its ranks ends without
/// having left. The watcher is this process's part in that, as long as the object lives.
class PeerWatcher {
 public:
  PeerWatcher() = default;
  virtual ~PeerWatcher() = default;
  PeerWatcher(const PeerWatcher&) = delete;
  PeerWatcher& operator=(const PeerWatcher&) = delete;

  /// This rank's operations fail because `lost` ended: an exit of this rank is only a consequence.
  virtual void note_loss(Rank lost) = 0;
};

}  // namespace horo::runtime::bootstrap
