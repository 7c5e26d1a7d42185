// SPDX-License-Identifier: Apache-2.0
#include "apps/run/horovod_names.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/common/tools.hpp"
#include "apps/common/wheel.hpp"

namespace horo::apps {

std::string horovod_python_path(std::string_view inherited) {
  namespace fs = std::filesystem;
  const fs::path here(own_directory());
  // In the build tree, in an installation, and in a Python wheel.
  std::vector<fs::path> places{here / "../python", here / HORO_PYTHON_FROM_BIN};
  for (const auto& packages : wheel_packages()) places.emplace_back(packages);
  for (const auto& place : places) {
    std::error_code none;
    const auto names = (place / "horo/compat/names").lexically_normal();
    if (!fs::is_directory(names, none)) continue;
    return inherited.empty() ? names.string() : fmt::format("{}:{}", names.string(), inherited);
  }
  return {};
}

bool is_horovodrun(std::string_view called) {
  return called.substr(called.rfind('/') + 1) == "horovodrun";
}

}  // namespace horo::apps
