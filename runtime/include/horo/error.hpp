// SPDX-License-Identifier: Apache-2.0
/// How functions fail: a failed call throws Error.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// The facts of an Error as fields. Fields that do not apply are empty.
struct ErrorDetail {
  horo_subject subject = HORO_SUBJECT_NONE;  ///< MISMATCH: what the ranks disagree about.
  std::string tensor;                        ///< MISMATCH, DUPLICATE: the name of the tensor.
  std::string host;                          ///< PEER_LOST: the host of the lost rank.
  std::vector<int> ranks;  ///< PEER_LOST: the lost rank. SHUT_DOWN: the rank that has left.
};

/// Why a call failed. After HORO_PEER_LOST nothing more completes; after HORO_MISMATCH the job
/// continues.
class Error : public std::runtime_error {
 public:
  /// check() throws it. Fails: std::bad_alloc.
  Error(horo_status status, const std::string& message, ErrorDetail detail = {})
      : std::runtime_error(message),
        status_(status),
        detail_(std::make_shared<const ErrorDetail>(std::move(detail))) {}

  /// The kind of failure, for code that must decide. what() has the words for people.
  horo_status status() const noexcept { return status_; }

  /// The same facts as in what(), as fields.
  const ErrorDetail& detail() const noexcept { return *detail_; }

 private:
  horo_status status_;
  std::shared_ptr<const ErrorDetail> detail_;  ///< Shared, so that copying an Error never throws.
};

/// Throws unless `status` is HORO_OK; for calls of horo.h. Call it before the thread's next call.
/// Fails: Error with this status, and message and detail of the calling thread's last failure.
inline void check(horo_status status) {
  if (status == HORO_OK) return;
  const std::string message = horo_last_error();
  horo_error_detail known{};
  known.size = sizeof(known);
  if (horo_last_error_detail(&known) != HORO_OK) throw Error(status, message);
  throw Error(status, message,
              {.subject = known.subject,
               .tensor = known.tensor,
               .host = known.host,
               .ranks = {known.ranks, known.ranks + known.rank_count}});
}

}  // namespace v1
}  // namespace horo
