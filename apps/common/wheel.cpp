// SPDX-License-Identifier: Apache-2.0
#include "apps/common/wheel.hpp"

#include <filesystem>
#include <system_error>

#include "apps/common/tools.hpp"

namespace horo::apps {

std::vector<std::string> wheel_packages() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code none;
  const auto libraries = (fs::path(own_directory()) / "../lib").lexically_normal();
  for (const auto& entry : fs::directory_iterator(libraries, none)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    const auto package = entry.path() / "site-packages" / "horo";
    if (fs::is_directory(package, none)) found.push_back(package.parent_path());
  }
  return found;
}

}  // namespace horo::apps
