// SPDX-License-Identifier: Apache-2.0
#include "apps/run/horovod_names.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "apps/common/tools.hpp"

namespace horo::apps {

std::string horovod_python_path(std::string_view inherited) {
  namespace fs = std::filesystem;
  const fs::path here(own_directory());
  // The build tree's, and the prefix's.
  for (const auto* place : {"../python", HORO_PYTHON_FROM_BIN}) {
    std::error_code none;
    const auto names = (here / place / "horo/compat/names").lexically_normal();
    if (!fs::is_directory(names, none)) continue;
    return inherited.empty() ? names.string() : fmt::format("{}:{}", names.string(), inherited);
  }
  return {};
}

bool is_horovodrun(std::string_view called) {
  return called.substr(called.rfind('/') + 1) == "horovodrun";
}

}  // namespace horo::apps
