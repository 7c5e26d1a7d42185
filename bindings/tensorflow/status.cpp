// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/status.hpp"

#include <utility>

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

std::string fields_of(horo_status status) {
  horo_error_detail detail{};
  detail.size = sizeof detail;
  std::string fields = std::to_string(status);
  if (horo_last_error_detail(&detail) != HORO_OK) return fields + "\n0\n\n\n";
  fields += "\n" + std::to_string(detail.subject);
  fields += std::string("\n") + (detail.tensor != nullptr ? detail.tensor : "");
  fields += std::string("\n") + (detail.host != nullptr ? detail.host : "") + "\n";
  for (std::size_t i = 0; i < detail.rank_count; ++i)
    fields += (i == 0 ? "" : ",") + std::to_string(detail.ranks[i]);
  return fields;
}

}  // namespace

OpFailure OpFailure::of_library(horo_status status) {
  // The message comes first: reading the detail may itself fail and replace it.
  std::string message = horo_last_error();
  auto fields = fields_of(status) + "\n" + message;
  return {.code = code_of(status), .message = std::move(message), .fields = std::move(fields)};
}

OpFailure OpFailure::of(Status& status) {
  return {
      .code = api.TF_GetCode(status.get()), .message = api.TF_Message(status.get()), .fields = {}};
}

OpFailure OpFailure::invalid(std::string message) {
  auto fields = std::to_string(HORO_INVALID_ARGUMENT) + "\n0\n\n\n\n" + message;
  return {
      .code = Code::invalid_argument, .message = std::move(message), .fields = std::move(fields)};
}

void OpFailure::store(TF_Status* status) const {
  api.TF_SetStatus(status, code, message.c_str());
  if (!fields.empty()) api.TF_SetPayload(status, kPayload, fields.c_str());
}

}  // namespace horo::tensorflow
