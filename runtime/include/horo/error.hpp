// SPDX-License-Identifier: Apache-2.0
/// How the functions of horo.hpp fail.
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
  Error(horo_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  horo_status status() const noexcept { return status_; }

 private:
  horo_status status_;
};

/// Throws the calling thread's last error unless `status` is HORO_OK.
inline void check(horo_status status) {
  if (status != HORO_OK) {
    throw Error(status, horo_last_error());
  }
}

}  // namespace v1
}  // namespace horo
