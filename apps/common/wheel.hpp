// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

/// Folders that hold the Python package where a wheel brought this program: site-packages of each
/// Python 3 of its environment. Blocks: for the file system.
std::vector<std::string> wheel_packages();

}  // namespace horo::apps
