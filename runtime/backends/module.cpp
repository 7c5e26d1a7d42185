// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/module.hpp"

#include <array>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "base/version.hpp"

namespace horo::runtime {

namespace {

struct Origin {
  std::string_view module;
  std::string_view option;    ///< CMake option that builds it; empty: it is always built.
  std::string_view packages;  ///< Packages with the libraries that it needs; empty: none.
};

constexpr std::array kOrigins = {
    Origin{"tcp", "", ""},
    Origin{"gloo", "HORO_GLOO", "Debian's libgloo0"},
    Origin{"openmpi", "HORO_MPI", "Debian's libopenmpi3"},
    Origin{"mpich", "HORO_MPI", "Debian's libmpich12"},
    Origin{"cuda", "HORO_CUDA", "NVIDIA's driver, or ROCm"},
    Origin{"nccl", "HORO_CUDA",
           "NVIDIA's driver, and NCCL from PyPI's nvidia-nccl-cu13; or with ROCm"},
};

const Origin* origin_of(std::string_view module) {
  for (const auto& origin : kOrigins) {
    if (origin.module == module) return &origin;
  }
  return nullptr;
}

Failure missing(std::string_view name, const std::string& path) {
  const auto* origin = origin_of(name);
  if (origin == nullptr) {
    return fail(Errc::not_found, "there is no backend '{}'; this version knows {}", name,
                "tcp, gloo, openmpi, mpich, cuda and nccl");
  }
  if (origin->option.empty()) {
    return fail(Errc::not_found, "backend '{}' is incomplete: there is no {}; install Horo again",
                name, path);
  }
  return fail(Errc::not_found,
              "backend '{}' is not in this build: there is no {}; build with {}=ON to see what it "
              "lacks",
              name, path, origin->option);
}

Failure not_loadable(std::string_view name) {
  const char* why = dlerror();
  const auto* origin = origin_of(name);
  return fail(Errc::unavailable, "backend '{}' cannot be loaded: {}{}{}", name,
              why == nullptr ? "no reason given" : why,
              origin == nullptr || origin->packages.empty() ? "" : "; what it needs comes with ",
              origin == nullptr ? "" : origin->packages);
}

/// Loads libraries that a wheel carries for modules. The machine's own library of a name is
/// preferred, because the loader uses one library per name. One library may need another, so all
/// are tried until none more loads.
void load_carried(const std::string& folder) {
  std::error_code none;
  std::vector<std::filesystem::path> left;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    if (file.path().filename().string().find(".copyright") == std::string::npos)
      left.push_back(file.path());
  }
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
  const auto loads = [&](const std::filesystem::path& path) {
    return dlopen(path.filename().c_str(), kMode) != nullptr ||
           dlopen(path.c_str(), kMode) != nullptr;
  };
  while (std::erase_if(left, loads) > 0) {
  }
}

void* open_module(const std::string& path, const std::string& folder) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  load_carried(folder + "/carried");
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::string module_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&module_folder), &info) == 0) return "horo";
  // A program's own name may be relative to where it was started.
  std::array<char, PATH_MAX> absolute{};
  const std::string path(realpath(info.dli_fname, absolute.data()) == nullptr ? info.dli_fname
                                                                              : absolute.data());
  return path.substr(0, path.rfind('/')) + "/horo";
}

Result<const ModuleEntry*> load_module(std::string_view name, const std::string& folder) {
  const auto path = fmt::format("{}/horo-backend-{}.so", folder, name);
  if (access(path.c_str(), F_OK) != 0) return missing(name, path);
  void* handle = open_module(path, folder);
  if (handle == nullptr) return not_loadable(name);
  const auto* entry = static_cast<const ModuleEntry*>(dlsym(handle, kModuleSymbol));
  if (entry == nullptr || entry->magic != kModuleMagic) {
    return fail(Errc::protocol, "{} is not a backend of horo: it has no {}", path, kModuleSymbol);
  }
  if (entry->version != version_code() || entry->layout != kModuleLayout) {
    return fail(
        Errc::version_mismatch,
        "{} is of version code {} (layout {}), this libhoro of {} (layout {}); install both "
        "from one build",
        path, entry->version, entry->layout, version_code(), kModuleLayout);
  }
  if (entry->name != name)
    return fail(Errc::protocol, "{} is the backend '{}'; do not rename modules", path, entry->name);
  return entry;
}

Result<const ModuleEntry*> load_usable_module(std::string_view name, const std::string& folder) {
  HORO_TRY(const auto* entry, load_module(name, folder));
  if (entry->probe != nullptr) HORO_TRY_STATUS(entry->probe());
  return entry;
}

}  // namespace horo::runtime
