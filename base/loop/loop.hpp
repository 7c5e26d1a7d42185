// SPDX-License-Identifier: Apache-2.0
// The event loop of launcher, agent and tools: tasks, timers, signals and descriptors, one thread.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo {

using Task = std::function<void()>;

/// Something the loop will call; it no longer does once this is destroyed or reset, even from
/// inside the task itself. Thread: the loop's.
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

/// A descriptor the loop waits for. Does not own it: destroy this before closing the descriptor.
/// At most one per descriptor. Plain files and /dev/null count as always ready.
/// Thread: the loop's.
class Descriptor {
 public:
  class State;  ///< Opaque.

  Descriptor() = default;
  explicit Descriptor(std::shared_ptr<State> state);
  Descriptor(Descriptor&&) noexcept = default;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  /// Calls `task` again and again while there is something to read, the other side has hung up or
  /// the descriptor is in error; an empty task stops that.
  void on_readable(Task task);
  /// The same for room to write.
  void on_writable(Task task);
  void reset();

  explicit operator bool() const { return state_ != nullptr; }

 private:
  std::shared_ptr<State> state_;
};

/// Tasks run one after the other in the order of post, never inside the call that adds them.
/// Thread: the one that calls run(), unless a function says otherwise.
class Loop {
 public:
  class Impl;  ///< Opaque; base/loop/asio.hpp lends what is inside.

  /// `ignored`: for programs of ours, where a peer that is gone is an error of the write and not
  /// the end. A library leaves its process as it is and writes with MSG_NOSIGNAL.
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

  /// Calls `task` for every arrival of signal `number`; several arrivals may be told as one.
  /// Fails: invalid_argument (no such signal, or one that cannot be caught), unavailable.
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
