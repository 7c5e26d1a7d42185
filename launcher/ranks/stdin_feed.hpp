// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "launcher/process/process_group.hpp"

namespace horo::launcher {

/// Standard input on its way from the launcher to the rank of this host that reads it, if there is
/// one: waiting -> open -> ended. Input that comes before the rank has started is kept.
/// Thread: the loop's.
class StdinFeed {
 public:
  enum class State : std::uint8_t { waiting, open, ended };

  /// `room` runs when the next input may follow. `state`: waiting if a rank of this host will read.
  StdinFeed(State state, Task room) : state_(state), room_(std::move(room)) {}

  /// `reader` has started; it outlives its end, see end().
  void open(ProcessGroup& reader) {
    state_ = State::open;
    reader_ = &reader;
    if (!early_.empty()) feed(std::exchange(early_, {}));
    if (closed_early_) reader_->close_input();
  }

  /// The reader has ended, or will never start.
  void end() { state_ = State::ended; }

  /// A reader that has not started will never start.
  void end_if_waiting() {
    if (state_ == State::waiting) end();
  }

  void feed(std::string_view bytes) {
    if (state_ == State::waiting) {
      early_.append(bytes);
    } else if (state_ == State::open) {
      reader_->write_input(bytes, room_);
    } else {
      room_();
    }
  }

  void close() {
    if (state_ == State::waiting) closed_early_ = true;
    if (state_ == State::open) reader_->close_input();
  }

 private:
  State state_;
  Task room_;
  ProcessGroup* reader_ = nullptr;
  std::string early_;
  bool closed_early_ = false;
};

}  // namespace horo::launcher
