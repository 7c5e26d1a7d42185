// SPDX-License-Identifier: Apache-2.0
#include "apps/common/variables.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/knobs/knob_table.hpp"
#include "base/knobs/nearest.hpp"
#include "base/worker_env.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kStart = "HORO_";

/// The knob's variable that was probably meant; empty: the name is right, or it is another
/// program's.
std::string meant_by(std::string_view variable) {
  // At most one letter in four may be wrong: HORO_TAIL does not mean HORO_TAG.
  int least = static_cast<int>(variable.size() - kStart.size()) / 4 + 1;
  std::string best;
  for (const auto& row : knob_rows()) {
    auto name = variable_name(row.text->key);
    const int distance = edit_distance(variable, name);
    if (distance == 0) return {};
    if (distance < least) {
      least = distance;
      best = std::move(name);
    }
  }
  return best;
}

}  // namespace

std::vector<std::string> mistyped_variables(const char* const* environment) {
  std::vector<std::string> warnings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (!entry.starts_with(kStart)) continue;
    const auto variable = entry.substr(0, entry.find('='));
    if (describes_rank(variable) || variable == "HORO_CONFIG_FILE" ||
        variable == "HORO_RESTART_COUNT")
      continue;
    if (const auto meant = meant_by(variable); !meant.empty()) {
      warnings.push_back(
          fmt::format("the variable {} has no effect; did you mean {}?", variable, meant));
    }
  }
  return warnings;
}

}  // namespace horo::apps
