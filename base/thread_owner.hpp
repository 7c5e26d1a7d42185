// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "base/result.hpp"

namespace horo {

/// Aborts when a thread other than the owner calls; compiled out of release builds.
class ThreadOwner {
 public:
  void check() const {
#ifndef NDEBUG
    HORO_CHECK(std::this_thread::get_id() == owner_);
#endif
  }

  /// Hands ownership to the calling thread.
  void adopt() { owner_ = std::this_thread::get_id(); }

 private:
  std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace horo
