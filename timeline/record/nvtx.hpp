// SPDX-License-Identifier: Apache-2.0
// Shows operations as ranges in NVIDIA's profilers, through libnvToolsExt where it is installed.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace horo::timeline {

/// Thread: any.
class Nvtx {
 public:
  static constexpr const char* kFile = "libnvToolsExt.so.1";

  /// Loads the library for the rest of the process, because a profiler may keep pointers into it.
  /// Fails: unavailable (the library or one of its functions is missing; the message names it).
  static Result<Nvtx> load(const char* file = kFile);

  /// Begins a range of the process, which may end on another thread. The text is copied. Returns 0
  /// where the library found no profiler when it was first called.
  std::uint64_t begin(const char* text) const { return begin_(text); }

  void end(std::uint64_t range) const { end_(range); }

 private:
  using Begin = std::uint64_t (*)(const char*);
  using End = void (*)(std::uint64_t);

  Nvtx(Begin begins, End ends) : begin_(begins), end_(ends) {}

  Begin begin_;
  End end_;
};

}  // namespace horo::timeline
