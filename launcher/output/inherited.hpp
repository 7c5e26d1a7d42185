// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/loop/loop.hpp"

namespace horo::launcher {

enum class Readiness : std::uint8_t { readable, writable };

/// Waits for a descriptor that other processes share (a terminal, our parent's pipe). Does not
/// change its flags, because O_NONBLOCK would hold for those processes too. Thread: the loop's.
class InheritedWatch {
 public:
  InheritedWatch() = default;
  InheritedWatch(InheritedWatch&& other) noexcept;
  InheritedWatch& operator=(InheritedWatch&& other) noexcept;
  ~InheritedWatch();

  /// Calls `task` repeatedly while `fd` is ready. Does not own `fd`.
  /// Fails: unsupported (a plain file, which is always ready), unavailable, io.
  static Result<InheritedWatch> make(Loop& loop, int fd, Readiness readiness, Task task);

  void reset();

  explicit operator bool() const { return epoll_ >= 0; }

 private:
  int epoll_ = -1;  // Readable while `fd` is ready. Not shared, so it may be non-blocking.
  Descriptor watch_;
};

}  // namespace horo::launcher
