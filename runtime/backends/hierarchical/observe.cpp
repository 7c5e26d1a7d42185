// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/observe.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <iterator>
#include <sys/resource.h>
#include <system_error>

#include "runtime/backends/module.hpp"

namespace horo::runtime {

namespace {

bool is_loaded(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

MpiEvidence observe_mpi(const std::function<const char*(const char*)>& environment) {
  return {.openmpi_loaded = is_loaded("libmpi.so.40"),
          .mpich_loaded = is_loaded("libmpich.so.12"),
          .openmpi_launched = environment("OMPI_COMM_WORLD_SIZE") != nullptr,
          .mpich_launched =
              environment("PMI_SIZE") != nullptr && environment("MPI_LOCALNRANKS") != nullptr};
}

std::vector<BackendCandidate> observe_candidates(CpuOperations wanted, const std::string& mpi,
                                                 const std::string& folder) {
  std::vector<BackendCandidate> candidates;
  const auto observe = [&](const std::string& name) {
    const auto module = load_usable_module(name, folder);
    candidates.push_back({name, module ? "" : module.error().message});
    return module.has_value();
  };
  if (!mpi.empty()) observe(mpi);
  const bool tcp = wanted != CpuOperations::gloo && observe("tcp");
  // Gloo and what it needs are loaded only if they may be used.
  if (tcp) {
    candidates.push_back({"gloo", ""});
  } else {
    observe("gloo");
  }
  return candidates;
}

std::uint64_t free_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return ~std::uint64_t{0};
  std::error_code none;
  const std::filesystem::directory_iterator open("/proc/self/fd", none);
  if (none == std::errc::too_many_files_open) return 0;
  if (none) return limit.rlim_cur;
  const auto used = static_cast<std::uint64_t>(std::distance(begin(open), end(open)));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace horo::runtime
