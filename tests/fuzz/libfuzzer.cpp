// SPDX-License-Identifier: Apache-2.0
// All targets under libFuzzer: horo-fuzz --target=NAME [libFuzzer's options] [corpus]. Without a
// name the first byte of the input chooses.
#include "target.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const std::vector<horo::fuzz::Target>& targets() {
  static const auto all = horo::fuzz::all_targets();
  return all;
}

const horo::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr const char* kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp((*argv)[i], kFlag, std::strlen(kFlag)) != 0) continue;
    for (const auto& target : targets()) {
      if (std::strcmp((*argv)[i] + std::strlen(kFlag), target.name) == 0) chosen = &target;
    }
    if (chosen != nullptr) continue;
    std::fprintf(stderr, "no target '%s'; there are:\n", (*argv)[i] + std::strlen(kFlag));
    for (const auto& target : targets()) std::fprintf(stderr, "  %s\n", target.name);
    return 1;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* target = chosen;
  if (target == nullptr) {
    if (size == 0) return 0;
    target = &targets()[data[0] % targets().size()];
    ++data;
    --size;
  }
  const auto broken = target->run({reinterpret_cast<const char*>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", target->name, broken.c_str());
  std::abort();
}
