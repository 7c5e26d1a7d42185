// SPDX-License-Identifier: Apache-2.0
// Sets take turns on a device. Operations of two sets that wait for other ranks on the device
// itself do not run there at the same time: whatever starts first may need all of the device, and
// the ready events of their tensors, not the order of starts, say which that is.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace horo::runtime {

/// Thread: the holder of the progress token.
class DeviceTurns {
 public:
  using SharedEvent = std::shared_ptr<void>;

  /// It is the turn of `owner`. Its streams wait for these events, behind which the set before it
  /// has no work; empty: it is that set.
  std::vector<SharedEvent> begin(const void* owner) {
    if (owner_ == owner) return {};
    owner_ = owner;
    return std::exchange(last_, {});
  }

  /// Stream number `stream` of the owner has no work behind `event`.
  void note(std::size_t stream, SharedEvent event) {
    if (last_.size() <= stream) last_.resize(stream + 1);
    last_[stream] = std::move(event);
  }

 private:
  const void* owner_ = nullptr;
  std::vector<SharedEvent> last_;  ///< By stream; null: it has had no work.
};

}  // namespace horo::runtime
