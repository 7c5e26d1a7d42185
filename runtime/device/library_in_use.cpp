// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/library_in_use.hpp"

#include <link.h>

namespace horo::runtime {

namespace {

struct Search {
  std::string_view prefix;
  std::string found{};
};

int look(dl_phdr_info* library, std::size_t, void* search) {
  auto& wanted = *static_cast<Search*>(search);
  const std::string_view path = library->dlpi_name == nullptr ? "" : library->dlpi_name;
  const auto name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(wanted.prefix)) return 0;
  wanted.found = path;
  return 1;
}

}  // namespace

std::string loaded_library(std::string_view prefix) {
  Search search{.prefix = prefix};
  dl_iterate_phdr(&look, &search);
  return search.found;
}

}  // namespace horo::runtime
