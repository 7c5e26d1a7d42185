// SPDX-License-Identifier: Apache-2.0
// Shows operations as ranges in NVIDIA's profilers: through the library that a profiler names for
// itself, or through libnvToolsExt where it is installed.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace horo::timeline {

/// Thread: any.
class Nvtx {
 public:
  static constexpr const char* kFile = "libnvToolsExt.so.1";

  /// The library that NVTX_INJECTION64_PATH names, as a profiler sets it for the programs that it
  /// starts; without that variable kFile. Fails: as attach() and load().
  static Result<Nvtx> find();

  /// Hands Horo's functions to a profiler's library, as NVTX 3 does without a library of its own.
  /// It is loaded for the rest of the process. Fails: unavailable (it is missing, is no profiler's
  /// library, or takes no ranges; the message names it).
  static Result<Nvtx> attach(const char* file);

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
