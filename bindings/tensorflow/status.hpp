// SPDX-License-Identifier: Apache-2.0
// Failures of libhoro and of TensorFlow as values, and as a TF_Status.
#pragma once

#include <exception>
#include <string>
#include <string_view>

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

/// The failure that ended an operation, or none. `fields` is for programs, see error_fields.hpp; it
/// is empty for failures of TensorFlow itself.
struct OpFailure {
  Code code = Code::ok;
  std::string message;
  std::string fields;

  bool is_ok() const { return code == Code::ok; }

  /// The calling thread's last failure of libhoro.
  static OpFailure of_library(horo_status status);

  static OpFailure of(Status& status);
  static OpFailure invalid(std::string message);

  /// An exception of this module while it did `what`. When not even this text can have memory, it
  /// is empty.
  static OpFailure of_exception(const std::exception& error, std::string_view what) noexcept;

  /// Writes the failure into a TF_Status; the fields become its payload "horo".
  void store(TF_Status* status) const;
};

}  // namespace horo::tensorflow
