// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/output/inherited.hpp"

namespace horo::launcher {

/// Standard output or error as we inherited it: a terminal, pipe, socket or file that may be slow
/// and whose flags are not ours to change. Never blocks the loop; what does not fit waits here, and
/// whoever writes looks at backlog() and stops writing. Thread: the loop's.
class Screen {
 public:
  /// `fd` stays open as long as this lives. `on_change` is called after waiting bytes were written;
  /// `on_error` once, with errno too, when the other side is gone or full: later text is tried
  /// again, and lost if it fails.
  Screen(Loop& loop, int fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void on_change(Task task) { on_change_ = std::move(task); }

  void on_error(std::function<void(int number, const Error&)> task) { on_error_ = std::move(task); }

  /// Where text to write is appended; flush() sends it off.
  std::string& buffer() { return buffer_; }

  void flush();

  /// Bytes that wait.
  std::size_t backlog() const { return buffer_.size() - written_; }

  /// Bytes that no longer wait, since the beginning.
  std::uint64_t done() const { return forgotten_ + written_; }

  /// Where in the stream the next byte of buffer() will be.
  std::uint64_t end() const { return forgotten_ + buffer_.size(); }

 private:
  /// How to write without waiting.
  enum class Way : std::uint8_t {
    plain,    // A file or /dev/null: it takes everything.
    own,      // `own_` is a non-blocking opening of the same pipe or terminal.
    socket,   // MSG_DONTWAIT.
    careful,  // No more than fits for certain once poll says that there is room.
  };

  ssize_t write_some(const char* data, std::size_t size);
  void pump();
  void wait_for_room();
  void lose(int error);

  Loop& loop_;
  const int fd_;
  int own_ = -1;
  Way way_ = Way::plain;
  std::string buffer_;
  std::size_t written_ = 0;      // Of buffer_.
  std::uint64_t forgotten_ = 0;  // Written, and not in buffer_ any more.
  bool failed_ = false;          // on_error was called.
  InheritedWatch watch_;
  Subscription retry_;
  Task on_change_;
  std::function<void(int, const Error&)> on_error_;
};

}  // namespace horo::launcher
