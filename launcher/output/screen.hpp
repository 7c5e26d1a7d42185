// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/output/inherited.hpp"

namespace horo::launcher {

/// An inherited standard output or error: a terminal, pipe, socket or file that may be slow. Other
/// processes share it, so its flags are not changed. Never blocks the loop: text that does not fit
/// waits here, and writers stop while backlog() is large. Thread: the loop's.
class Screen {
 public:
  /// `fd` stays open as long as this lives.
  Screen(Loop& loop, int fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Called after waiting bytes were written.
  void on_change(Task task) { on_change_ = std::move(task); }

  /// Called once, with errno, when the other side is gone or full. Later text is still tried, and
  /// lost if that fails.
  void on_error(std::function<void(int number, const Error&)> task) { on_error_ = std::move(task); }

  /// Append text here, then call flush().
  std::string& buffer() { return buffer_; }

  void flush();

  /// Bytes that wait to be written.
  std::size_t backlog() const { return buffer_.size() - written_; }

  /// Bytes written since the beginning.
  std::uint64_t done() const { return forgotten_ + written_; }

  /// Position in the stream of the next byte that is appended to buffer().
  std::uint64_t end() const { return forgotten_ + buffer_.size(); }

 private:
  /// How to write without waiting.
  enum class WriteMethod : std::uint8_t {
    plain,    // A file or /dev/null: writes do not wait.
    own,      // `own_` is the same pipe or terminal, opened again without blocking.
    socket,   // MSG_DONTWAIT.
    careful,  // Only as much as certainly fits once poll reports room.
  };

  ssize_t write_some(const char* data, std::size_t size);
  void pump();
  void wait_for_room();
  void lose(int error);

  Loop& loop_;
  const int fd_;
  int own_ = -1;
  WriteMethod method_ = WriteMethod::plain;
  std::string buffer_;
  std::size_t written_ = 0;      // Bytes of buffer_ that are written.
  std::uint64_t forgotten_ = 0;  // Bytes that were written and removed from buffer_.
  bool failed_ = false;          // on_error was called.
  InheritedWatch watch_;
  Subscription retry_;
  Task on_change_;
  std::function<void(int, const Error&)> on_error_;
};

}  // namespace horo::launcher
