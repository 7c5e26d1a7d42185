// SPDX-License-Identifier: Apache-2.0
/// How functions fail: what cannot be done throws Error.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <stdexcept>
#include <string>

#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// Why a call failed. After HORO_PEER_LOST nothing more completes; after HORO_MISMATCH the job goes
/// on.
class Error : public std::runtime_error {
 public:
  /// What check() throws. Fails: std::bad_alloc.
  Error(horo_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  /// The code, for what depends on it; what() has the words.
  horo_status status() const noexcept { return status_; }

 private:
  horo_status status_;
};

/// Throws unless `status` is HORO_OK; for calls of horo.h. Call it before the thread's next call.
/// Fails: Error with this status and the calling thread's last message.
inline void check(horo_status status) {
  if (status != HORO_OK) {
    throw Error(status, horo_last_error());
  }
}

}  // namespace v1
}  // namespace horo
