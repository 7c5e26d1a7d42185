// SPDX-License-Identifier: Apache-2.0
// What this build can do on this machine, found by trying.
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

struct Finding {
  std::string section;  ///< "Frameworks".
  std::string name;
  bool available = false;
  std::string detail;  ///< Version or place; else why not.
};

/// Every row of the table. Blocks: while Python imports each framework, at most a minute each.
std::vector<Finding> probe_build();

}  // namespace horo::apps
