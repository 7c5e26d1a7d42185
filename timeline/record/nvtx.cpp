// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/nvtx.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>

namespace horo::timeline {

namespace {

// The interface between NVTX 3 and a profiler, as NVIDIA's headers have it. The profiler's library
// asks for tables of pointers to functions, and writes its own functions there.

using AnyFunction = void (*)();
using Table = AnyFunction**;
using GetTable = int (*)(int module, Table* table, unsigned* size);

constexpr int kCore = 1;
constexpr int kDomains = 5;
constexpr std::size_t kSlots = 16;  // In both modules.
constexpr std::size_t kRangeStartA = 5;
constexpr std::size_t kRangeEnd = 7;
constexpr std::uint32_t kCallbacks = 1;
constexpr std::uint32_t kVersionInfo = 3;

struct Module {
  std::array<AnyFunction, kSlots> functions{};
  std::array<AnyFunction*, kSlots> table{};
};

Module core;
Module domains;  // Profilers may expect it; Horo calls none of its functions.

int get_table(int module, Table* table, unsigned* size) {
  auto* const known = module == kCore ? &core : module == kDomains ? &domains : nullptr;
  if (known == nullptr) return 0;
  for (std::size_t slot = 1; slot < kSlots; ++slot)
    known->table.at(slot) = &known->functions.at(slot);
  *table = known->table.data();
  if (size != nullptr) *size = kSlots;
  return 1;
}

struct Callbacks {
  std::size_t size = sizeof(Callbacks);
  GetTable get = get_table;
};

struct VersionInfo {
  std::size_t size = sizeof(VersionInfo);
  std::uint32_t version = 3;
  std::uint32_t reserved = 0;
  void (*set_version)(std::uint32_t) = [](std::uint32_t) {};
};

const void* export_table(std::uint32_t id) {
  static const Callbacks callbacks;
  static const VersionInfo version;
  if (id == kCallbacks) return &callbacks;
  return id == kVersionInfo ? &version : nullptr;
}

}  // namespace

Result<Nvtx> Nvtx::find() {
  const char* const profiler = std::getenv("NVTX_INJECTION64_PATH");
  return profiler == nullptr ? load() : attach(profiler);
}

Result<Nvtx> Nvtx::attach(const char* file) {
  void* const library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return fail(Errc::unavailable, "no NVTX ranges: {}", why == nullptr ? file : why);
  }
  using Initialize = int (*)(const void* (*)(std::uint32_t));
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize == nullptr)
    return fail(Errc::unavailable, "no NVTX ranges: {} has no InitializeInjectionNvtx2", file);
  const auto begin = &core.functions.at(kRangeStartA);
  const auto end = &core.functions.at(kRangeEnd);
  if (initialize(export_table) == 0 || *begin == nullptr || *end == nullptr)
    return fail(Errc::unavailable, "no NVTX ranges: {} takes none", file);
  return Nvtx(reinterpret_cast<Begin>(*begin), reinterpret_cast<End>(*end));
}

Result<Nvtx> Nvtx::load(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return fail(Errc::unavailable, "no NVTX ranges: {}", why == nullptr ? file : why);
  }
  const auto begin = reinterpret_cast<Begin>(dlsym(library, "nvtxRangeStartA"));
  const auto end = reinterpret_cast<End>(dlsym(library, "nvtxRangeEnd"));
  if (begin == nullptr || end == nullptr) {
    return fail(Errc::unavailable, "no NVTX ranges: {} has no {}", file,
                begin == nullptr ? "nvtxRangeStartA" : "nvtxRangeEnd");
  }
  return Nvtx(begin, end);
}

}  // namespace horo::timeline
