// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/status.hpp"

#include <exception>
#include <new>
#include <utility>

#include "bindings/error_fields.hpp"

namespace horo::tensorflow {

namespace {

constexpr const char* kPayload = "horo";

Code code_of(horo_status status) {
  switch (status) {
    case HORO_OK:
      return Code::ok;
    case HORO_INVALID_ARGUMENT:
    case HORO_DUPLICATE:
      return Code::invalid_argument;
    case HORO_NOT_FOUND:
      return Code::not_found;
    case HORO_TIMED_OUT:
      return Code::deadline_exceeded;
    case HORO_OUT_OF_MEMORY:
    case HORO_RESOURCE_EXHAUSTED:
      return Code::resource_exhausted;
    case HORO_MISMATCH:
    case HORO_NOT_INITIALIZED:
    case HORO_FORKED:
      return Code::failed_precondition;
    case HORO_SHUT_DOWN:
    case HORO_CANCELLED:
    case HORO_REMOVED:
    // TensorFlow replaces errors with the code "unavailable", and their payloads are lost.
    case HORO_PEER_LOST:
    case HORO_UNAVAILABLE:
      return Code::aborted;
    case HORO_UNSUPPORTED:
      return Code::unimplemented;
    case HORO_IO:
    case HORO_PROTOCOL:
    case HORO_PERMISSION_DENIED:
    case HORO_VERSION_MISMATCH:
    case HORO_IN_PROGRESS:
      return Code::internal;
  }
  return Code::internal;  // a status of a newer library
}

}  // namespace

OpFailure OpFailure::of_library(horo_status status) {
  // The message comes first: reading the detail may itself fail and replace it.
  std::string message = horo_last_error();
  auto fields = bindings::error_fields(status, message);
  return {.code = code_of(status), .message = std::move(message), .fields = std::move(fields)};
}

OpFailure OpFailure::of(Status& status) {
  return {
      .code = api.TF_GetCode(status.get()), .message = api.TF_Message(status.get()), .fields = {}};
}

OpFailure OpFailure::invalid(std::string message) {
  auto fields = bindings::plain_fields(HORO_INVALID_ARGUMENT, message);
  return {
      .code = Code::invalid_argument, .message = std::move(message), .fields = std::move(fields)};
}

OpFailure OpFailure::of_exception(const std::exception& error, std::string_view what) noexcept {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const auto status = memory ? HORO_OUT_OF_MEMORY : HORO_RESOURCE_EXHAUSTED;
  try {
    std::string message = std::string(what) + ": " + error.what() +
                          (memory ? "; this process can have no more memory" : "");
    auto fields = bindings::plain_fields(status, message);
    return {.code = code_of(status), .message = std::move(message), .fields = std::move(fields)};
  } catch (const std::exception&) {
    return {.code = code_of(status), .message = {}, .fields = {}};
  }
}

void OpFailure::store(TF_Status* status) const {
  api.TF_SetStatus(status, code, message.c_str());
  if (!fields.empty()) api.TF_SetPayload(status, kPayload, fields.c_str());
}

}  // namespace horo::tensorflow
