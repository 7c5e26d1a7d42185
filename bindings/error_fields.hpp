// SPDX-License-Identifier: Apache-2.0
// The facts of a failure as text, which horo/_failures.py reads. Frameworks hand over texts only.
#pragma once

#include <string>
#include <string_view>

#include "horo/horo.h"

namespace horo::bindings {

/// The text on one line: a newline as \n and a backslash as two.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char letter : text) {
    if (letter == '\n') {
      line += "\\n";
    } else if (letter == '\\') {
      line += "\\\\";
    } else {
      line += letter;
    }
  }
  return line;
}

/// A failure without further facts.
inline std::string plain_fields(horo_status status, std::string_view message) {
  return std::to_string(status) + "\n0\n\n\n\n" + std::string(message);
}

/// The calling thread's last failure of libhoro: status, subject, tensor, host and ranks, one a
/// line, then `message`.
inline std::string error_fields(horo_status status, std::string_view message) {
  horo_error_detail detail{};
  detail.size = sizeof detail;
  if (horo_last_error_detail(&detail) != HORO_OK) return plain_fields(status, message);
  std::string fields = std::to_string(status) + "\n" + std::to_string(detail.subject);
  fields += "\n" + one_line(detail.tensor != nullptr ? detail.tensor : "");
  fields += "\n" + one_line(detail.host != nullptr ? detail.host : "") + "\n";
  for (std::size_t i = 0; i < detail.rank_count; ++i)
    fields += (i == 0 ? "" : ",") + std::to_string(detail.ranks[i]);
  return fields + "\n" + std::string(message);
}

}  // namespace horo::bindings
