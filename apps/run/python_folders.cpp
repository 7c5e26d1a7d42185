// SPDX-License-Identifier: Apache-2.0
#include "apps/run/python_folders.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/common/tools.hpp"
#include "apps/common/wheel.hpp"

namespace horo::apps {

std::string python_path_with(std::string_view folder, std::string_view inherited) {
  namespace fs = std::filesystem;
  const fs::path here(own_directory());
  // In the build tree, in an installation, and in a Python wheel.
  std::vector<fs::path> places{here / "../python", here / HORO_PYTHON_FROM_BIN};
  for (const auto& packages : wheel_packages()) places.emplace_back(packages);
  for (const auto& place : places) {
    std::error_code none;
    const auto found = (place / "horo/compat" / folder).lexically_normal();
    if (!fs::is_directory(found, none)) continue;
    return inherited.empty() ? found.string() : fmt::format("{}:{}", found.string(), inherited);
  }
  return std::string(inherited);
}

bool is_horovodrun(std::string_view called) {
  return called.substr(called.rfind('/') + 1) == "horovodrun";
}

}  // namespace horo::apps
