// SPDX-License-Identifier: Apache-2.0
// The event loop of launcher, agent and tools. One thread runs its tasks, timers, signals and
// descriptors.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo {

using Task = std::function<void()>;

/// A callback registered with the loop. After this object is destroyed or reset, even inside the
/// callback, the loop does not call it. Thread: the loop's.
class Subscription {
 public:
  class State;  ///< Opaque.

  Subscription() = default;
  explicit Subscription(std::shared_ptr<State> state);
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

  void reset();

  explicit operator bool() const { return state_ != nullptr; }

 private:
  std::shared_ptr<State> state_;
};

/// A descriptor that the loop watches. It does not own the descriptor and must be destroyed before
/// the descriptor is closed. At most one object per descriptor. Plain files and /dev/null are
/// always ready. Thread: the loop's.
class Descriptor {
 public:
  class State;  ///< Opaque.

  Descriptor() = default;
  explicit Descriptor(std::shared_ptr<State> state);
  Descriptor(Descriptor&&) noexcept = default;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  /// Calls `task` repeatedly while there is data to read, the other side has hung up, or the
  /// descriptor has an error. An empty task ends this.
  void on_readable(Task task);
  /// The same for space to write.
  void on_writable(Task task);
  void reset();

  explicit operator bool() const { return state_ != nullptr; }

 private:
  std::shared_ptr<State> state_;
};

/// Runs tasks one after the other in the order of post, never inside the call that adds them.
/// Thread: the thread that calls run(), unless a function says otherwise.
class Loop {
 public:
  class Impl;  ///< Opaque; base/loop/asio.hpp lends what is inside.

  /// `ignored` is for our programs: a write to a closed connection fails with an error instead of
  /// ending the program. A library must not change its process, and writes with MSG_NOSIGNAL
  /// instead.
  enum class BrokenPipes { ignored, untouched };

  /// Fails: unavailable (no descriptors left), io.
  static Result<std::unique_ptr<Loop>> make(BrokenPipes pipes = BrokenPipes::ignored);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Thread: any.
  void post(Task task);

  /// Calls `task` once, `delay` from now.
  [[nodiscard]] Subscription after(Duration delay, Task task);

  /// Calls `task` when signal `number` arrives; several arrivals may lead to one call. Fails:
  /// invalid_argument (no such signal, or one that cannot be caught), unavailable.
  Result<Subscription> on_signal(int number, Task task);

  /// Fails: invalid_argument (not an open descriptor), unavailable.
  Result<Descriptor> watch(int descriptor);

  /// Runs tasks until stop(). Blocks.
  void run();

  /// Makes run() return after the task that is running. Thread: any.
  void stop();

  Impl& impl() { return *impl_; }

 private:
  explicit Loop(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo
