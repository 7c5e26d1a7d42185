// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwloc.h>

#include "base/result.hpp"

namespace horo::discovery {

/// The functions of hwloc's library, loaded at the first use. Linking it would slow every start,
/// and it is needed only for binding.
struct HwlocLibrary {
  decltype(&hwloc_topology_init) init = nullptr;
  decltype(&hwloc_topology_destroy) destroy = nullptr;
  decltype(&hwloc_topology_load) load = nullptr;
  decltype(&hwloc_topology_set_components) set_components = nullptr;
  decltype(&hwloc_topology_set_io_types_filter) set_io_filter = nullptr;
  decltype(&hwloc_topology_set_synthetic) set_synthetic = nullptr;
  decltype(&hwloc_get_type_depth) depth = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count = nullptr;
  decltype(&hwloc_get_obj_by_depth) object = nullptr;
  decltype(&hwloc_bitmap_next) next = nullptr;

  /// Thread: any. Fails: unavailable, naming file and package.
  static Result<const HwlocLibrary*> get();
};

}  // namespace horo::discovery
