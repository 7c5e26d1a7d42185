// SPDX-License-Identifier: Apache-2.0
#include "apps/common/usage_error.hpp"

#include <unistd.h>

#include "base/exit_code.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

int usage_error(std::string_view tool, const Error& error) {
  const auto text =
      fmt::format("{}: {} (see '{} --help')\n", tool, printable_lines(error.message), tool);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  return exit_code::kUsage;
}

}  // namespace horo::apps
