// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/libssh.hpp"

#include <dlfcn.h>

namespace horo::launcher {

namespace {

constexpr const char* kLibrary = "libssh.so.4";

Result<Libssh> load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(Errc::not_found, "{}", dlerror());
  Libssh table;
#define HORO_LIBSSH_LOAD(name)                                                \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, #name)); \
  if (table.name == nullptr) return fail(Errc::not_found, "{} has no {}", kLibrary, #name);
  HORO_LIBSSH_FUNCTIONS(HORO_LIBSSH_LOAD)
#undef HORO_LIBSSH_LOAD
  return table;
}

}  // namespace

Result<const Libssh*> load_libssh() {
  static const auto loaded = load();
  if (!loaded) return Failure(loaded.error());
  return &*loaded;
}

}  // namespace horo::launcher
