// SPDX-License-Identifier: Apache-2.0
// A module that is wrong in one way, chosen by a macro.
#include "runtime/backends/module.hpp"

using namespace horo::runtime;

namespace {

[[maybe_unused]] horo::Status no_device() {
  return horo::fail(horo::Errc::unavailable, "this machine has no such device");
}

ModuleEntry entry() {
  ModuleEntry e{.magic = kModuleMagic,
                .version = HORO_VERSION_CODE,
                .layout = kModuleLayout,
                .name = "",
                .probe = nullptr,
                .make = nullptr,
                .exchange = nullptr,
                .open_device = nullptr};
#if defined(WRONG_version)
  e.version = HORO_VERSION_CODE + 1;
  e.name = "version";
#elif defined(WRONG_layout)
  e.layout += 1;
  e.name = "layout";
#elif defined(WRONG_magic)
  e.magic += 1;
#elif defined(WRONG_name)
  e.name = "other";
#elif defined(WRONG_device)
  e.name = "device";
  e.probe = &no_device;
#elif defined(WRONG_dependency)
  e.name = "dependency";
#endif
  return e;
}

}  // namespace

#if defined(WRONG_dependency)
extern "C" int horo_vanishing();
int (*const used)() = &horo_vanishing;
#endif

extern "C" __attribute__((visibility("default"))) const ModuleEntry horo_backend_module = entry();
