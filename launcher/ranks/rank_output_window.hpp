// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace horo::launcher {

/// The output of one rank that has been sent and has not reached the launcher's readers. The rank
/// is read no further from the moment it fills the window until half of it is free.
class RankOutputWindow {
 public:
  /// `size` in bytes; 0: never full.
  explicit RankOutputWindow(std::size_t size) : size_(size) {}

  bool is_full() const { return full_; }

  /// True if this filled the window.
  bool add(std::size_t bytes) {
    in_flight_ += bytes;
    if (size_ == 0 || full_ || in_flight_ < size_) return false;
    full_ = true;
    return true;
  }

  /// `bytes` have reached their readers; true if the rank may be read again.
  bool remove(std::size_t bytes) {
    in_flight_ -= std::min(bytes, in_flight_);
    if (!full_ || in_flight_ > size_ / 2) return false;
    full_ = false;
    return true;
  }

 private:
  std::size_t size_;
  std::size_t in_flight_ = 0;
  bool full_ = false;
};

}  // namespace horo::launcher
