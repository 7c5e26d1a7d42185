// SPDX-License-Identifier: Apache-2.0
#include "discovery/topology/hwloc_library.hpp"

#include <dlfcn.h>
#include <string>
#include <type_traits>

namespace horo::discovery {

namespace {

constexpr const char* kFile = "libhwloc.so.15";

struct Loaded {
  HwlocLibrary library;
  std::string problem;
};

Loaded load_library() {
  Loaded loaded;
  void* handle = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.problem = dlerror();
    return loaded;
  }
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) loaded.problem = fmt::format("{} has no {}", kFile, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  auto& l = loaded.library;
  find(l.init, "hwloc_topology_init");
  find(l.destroy, "hwloc_topology_destroy");
  find(l.load, "hwloc_topology_load");
  find(l.set_components, "hwloc_topology_set_components");
  find(l.set_io_filter, "hwloc_topology_set_io_types_filter");
  find(l.set_synthetic, "hwloc_topology_set_synthetic");
  find(l.depth, "hwloc_get_type_depth");
  find(l.count, "hwloc_get_nbobjs_by_depth");
  find(l.object, "hwloc_get_obj_by_depth");
  find(l.next, "hwloc_bitmap_next");
  return loaded;
}

}  // namespace

Result<const HwlocLibrary*> HwlocLibrary::get() {
  static const Loaded loaded = load_library();
  if (loaded.problem.empty()) return &loaded.library;
  return fail(Errc::unavailable, "cores and devices cannot be read: {}; install libhwloc15",
              loaded.problem);
}

}  // namespace horo::discovery
