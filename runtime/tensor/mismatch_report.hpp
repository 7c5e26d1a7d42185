// SPDX-License-Identifier: Apache-2.0
// Why an operation ends with `mismatch`, as it travels in the log from the rank that finds out to
// all others. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::runtime {

struct MismatchReport {
  ErrorSubject subject = ErrorSubject::none;
  std::string text;  ///< For people.
};

/// One byte for the subject, then the text: cutting the end shortens the text only.
std::string to_bytes(const MismatchReport& report);

/// The reverse. `bytes` come from another process; an unknown subject becomes `none`.
MismatchReport mismatch_report_of(std::string_view bytes);

/// The property's name in a message: "root rank".
std::string_view name(ErrorSubject subject);

}  // namespace horo::runtime
