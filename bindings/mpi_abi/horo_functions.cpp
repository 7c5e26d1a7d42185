// SPDX-License-Identifier: Apache-2.0
#include "bindings/mpi_abi/horo_functions.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <string>

namespace horo::mpi_abi {

namespace {

HoroFunctions functions;

/// ".../lib/libhoro.so" for this module at ".../lib/horo/horo-mpiabi.so".
std::string library_path() {
  Dl_info own{};
  if (dladdr(&functions, &own) == 0) return "libhoro.so";
  std::string path = own.dli_fname;
  for (int i = 0; i < 2; ++i)
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  return path + "/libhoro.so";
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load() {
  void* const library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  auto& f = functions;
  const bool found = library != nullptr && find(library, "horo_init", f.init) &&
                     find(library, "horo_shutdown", f.shutdown) &&
                     find(library, "horo_is_initialized", f.is_initialized) &&
                     find(library, "horo_rank", f.rank) && find(library, "horo_size", f.size) &&
                     find(library, "horo_last_error", f.last_error) &&
                     find(library, "horo_add_process_set", f.add_process_set) &&
                     find(library, "horo_declare", f.declare) &&
                     find(library, "horo_submit_with", f.submit_with) &&
                     find(library, "horo_await", f.await) &&
                     find(library, "horo_release", f.release);
  if (!found) std::fprintf(stderr, "horo: cannot load libhoro for MPI: %s\n", dlerror());
  return found;
}

}  // namespace

const HoroFunctions* horo_functions() {
  static const bool loaded = load();
  return loaded ? &functions : nullptr;
}

}  // namespace horo::mpi_abi
