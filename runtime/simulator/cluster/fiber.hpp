// SPDX-License-Identifier: Apache-2.0
// Code that blocks, on a virtual clock: a fiber has a stack of its own, and where real code would
// sleep it pauses until an event of the simulation resumes it. So thousands of ranks run the code
// of real ranks in one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <ucontext.h>

namespace horo::runtime::sim {

/// Thread: owner. A fiber that has not ended when it is destroyed never does: what is on its stack
/// stays as it is.
class Fiber {
 public:
  /// `body` begins with the first resume().
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Returns when the fiber pauses or ends. Not called by a fiber.
  void resume();

  bool ended() const { return ended_; }

  /// The fiber that runs; null outside of fibers.
  static Fiber* current();

  /// Called by a fiber: returns when it is resumed.
  static void pause();

 private:
  static void enter();

  std::function<void()> body_;
  std::byte* const stack_;
  ucontext_t own_{};
  ucontext_t resumer_{};
  bool ended_ = false;
};

}  // namespace horo::runtime::sim
