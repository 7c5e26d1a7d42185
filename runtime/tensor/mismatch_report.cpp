// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/mismatch_report.hpp"

namespace horo::runtime {

std::string to_bytes(const MismatchReport& report) {
  return static_cast<char>(report.subject) + report.text;
}

MismatchReport mismatch_report_of(std::string_view bytes) {
  if (bytes.empty()) return {};
  const auto subject = static_cast<unsigned char>(bytes.front());
  const bool known = subject <= static_cast<unsigned char>(kLastErrorSubject);
  return {.subject = known ? static_cast<ErrorSubject>(subject) : ErrorSubject::none,
          .text = std::string(bytes.substr(1))};
}

std::string_view name(ErrorSubject subject) {
  switch (subject) {
    case ErrorSubject::none:
      return "";
    case ErrorSubject::operation:
      return "operation";
    case ErrorSubject::dtype:
      return "dtype";
    case ErrorSubject::shape:
      return "shape";
    case ErrorSubject::root_rank:
      return "root rank";
    case ErrorSubject::reduce_op:
      return "reduce op";
    case ErrorSubject::prescale:
      return "prescale factor";
    case ErrorSubject::postscale:
      return "postscale factor";
    case ErrorSubject::group:
      return "group";
    case ErrorSubject::joined:
      return "joined ranks";
    case ErrorSubject::wire_dtype:
      return "wire dtype";
    case ErrorSubject::memory:
      return "memory";
  }
  return "";
}

}  // namespace horo::runtime
