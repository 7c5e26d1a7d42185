// SPDX-License-Identifier: Apache-2.0
// Failures of libhoro and of TensorFlow as values, and as a TF_Status.
#pragma once

#include <string>

#include "bindings/tensorflow/c_api.hpp"
#include "horo/horo.h"

namespace horo::tensorflow {

/// Owns a TF_Status.
class Status {
 public:
  Status() : status_(api.TF_NewStatus()) {}

  ~Status() { api.TF_DeleteStatus(status_); }

  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  bool ok() const { return api.TF_GetCode(status_) == Code::ok; }

  TF_Status* get() { return status_; }

 private:
  TF_Status* status_;
};

/// The failure that ended an operation, or none. `fields` is for programs: the status, subject,
/// tensor, host and ranks of horo_error_detail, one a line; it is empty for failures of TensorFlow
/// itself.
struct OpFailure {
  Code code = Code::ok;
  std::string message;
  std::string fields;

  bool is_ok() const { return code == Code::ok; }

  /// The calling thread's last failure of libhoro.
  static OpFailure of_library(horo_status status);

  static OpFailure of(Status& status);
  static OpFailure invalid(std::string message);

  /// Writes the failure into a TF_Status; the fields become its payload "horo".
  void store(TF_Status* status) const;
};

}  // namespace horo::tensorflow
