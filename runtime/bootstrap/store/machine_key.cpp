// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/machine_key.hpp"

#include <array>
#include <cstdio>
#include <sys/stat.h>

#include <fmt/format.h>

namespace horo::runtime::bootstrap {

std::string machine_key() {
  std::array<char, 64> boot{};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re"); file != nullptr) {
    if (std::fgets(boot.data(), boot.size(), file) == nullptr) boot[0] = '\0';
    std::fclose(file);
  }
  std::string key(boot.data());
  std::erase(key, '\n');

  struct stat network {};

  if (stat("/proc/self/ns/net", &network) == 0) key += fmt::format("-{}", network.st_ino);
  return key;
}

}  // namespace horo::runtime::bootstrap
