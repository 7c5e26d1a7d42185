// SPDX-License-Identifier: Apache-2.0
// Runs all targets under libFuzzer; used by scripts/fuzz.
//
//   horo-fuzz --target=NAME [libFuzzer's options] [corpus]   without a name the first byte chooses
//   horo-fuzz --export=DIRECTORY                             writes valid input to DIRECTORY/NAME/
//   and
//                                                            words to DIRECTORY/NAME.dict
#include "target.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace {

namespace fs = std::filesystem;
using horo::fuzz::Target;

const std::vector<Target>& targets() {
  static const auto all = horo::fuzz::all_targets();
  return all;
}

const Target* chosen = nullptr;

void choose(std::string_view name) {
  for (const auto& target : targets()) {
    if (name == target.name) chosen = &target;
  }
  if (chosen != nullptr) return;
  fmt::print(stderr, "no target '{}'; the targets are:\n", name);
  for (const auto& target : targets()) fmt::print(stderr, "  {}\n", target.name);
  std::exit(2);  // Returning would let libFuzzer continue.
}

[[noreturn]] void export_to(const fs::path& directory) {
  for (const auto& target : targets()) {
    fs::create_directories(directory / target.name);
    for (std::size_t i = 0; i < target.seeds.size(); ++i) {
      std::ofstream(directory / target.name / fmt::format("seed{}", i), std::ios::binary)
          << target.seeds[i];
    }
    std::ofstream words(directory / fmt::format("{}.dict", target.name));
    for (const auto& word : target.words) {
      words << '"';
      for (const char c : word) words << fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      words << "\"\n";
    }
  }
  std::exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kTarget = "--target=";
  constexpr std::string_view kExport = "--export=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word.starts_with(kTarget)) choose(word.substr(kTarget.size()));
    if (word.starts_with(kExport)) export_to(word.substr(kExport.size()));
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
  fmt::print(stderr, "{}: {}\n", target->name, broken);
  std::abort();
}
