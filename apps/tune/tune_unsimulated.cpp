// SPDX-License-Identifier: Apache-2.0
// For builds with sanitizers, which do not know the stacks of the simulator's fibers.
#include "apps/common/usage_error.hpp"
#include "apps/tune/tune_command.hpp"

namespace horo::apps {

int tune_simulated(const std::string& file, const std::string& /*config_out*/,
                   const TuneViews& /*views*/) {
  return usage_error(
      "horo tune",
      {Errc::unsupported, fmt::format("--simulate {}: this build has no simulator", file)});
}

}  // namespace horo::apps
