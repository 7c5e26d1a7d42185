// SPDX-License-Identifier: Apache-2.0
#include "apps/common/shell.hpp"

namespace horo::apps {

std::string shell_quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

}  // namespace horo::apps
