// SPDX-License-Identifier: Apache-2.0
// Marks places where another thread, or another process, may come in between: a completion that
// nobody has looked at yet, or two reads of a word that others write. Tests let a thread wait
// there, so that orders of events that are rare otherwise happen often.
#pragma once

#include <atomic>

namespace horo {

/// A thread calls this at a race point, unless it is null. Only tests set it. It may not call the
/// runtime. Thread: any.
inline std::atomic<void (*)()> race_point_hook{nullptr};

inline void race_point() {
  if (auto* const hook = race_point_hook.load(std::memory_order_relaxed); hook != nullptr)
      [[unlikely]]
    hook();
}

}  // namespace horo
