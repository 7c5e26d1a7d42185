// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::apps {

/// For a program that was installed by a Python wheel: the site-packages folders of its
/// environment, one per Python 3. Blocks: for the file system.
std::vector<std::string> wheel_packages();

}  // namespace horo::apps
