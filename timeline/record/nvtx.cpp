// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/nvtx.hpp"

#include <dlfcn.h>

namespace horo::timeline {

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
