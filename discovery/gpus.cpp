// SPDX-License-Identifier: Apache-2.0
#include "discovery/gpus.hpp"

#include <algorithm>
#include <dirent.h>
#include <memory>

namespace horo::discovery {

std::vector<std::string> nvidia_gpus(const std::string& root) {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };

  std::vector<std::string> addresses;
  const std::unique_ptr<DIR, Close> folder(opendir((root + "/proc/driver/nvidia/gpus").c_str()));
  if (!folder) return addresses;
  while (const auto* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') addresses.emplace_back(entry->d_name);
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

}  // namespace horo::discovery
