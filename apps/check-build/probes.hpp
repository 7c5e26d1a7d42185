// SPDX-License-Identifier: Apache-2.0
// Tests what this build can do on this machine.
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

struct Finding {
  std::string section;  ///< "Frameworks".
  std::string name;
  bool available = false;
  std::string detail;  ///< Version or place if it is available, otherwise the reason.
};

/// Every row of the table. Blocks: while Python imports each framework, up to a minute for each.
std::vector<Finding> probe_build();

}  // namespace horo::apps
