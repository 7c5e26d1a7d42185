// SPDX-License-Identifier: Apache-2.0
// The Chrome trace of a job that runs: a thread of its own reads the rings and writes the file, so
// that nobody who records ever waits for it.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::timeline {

struct TraceOptions {
  std::string path;
  bool mark_cycles = false;
  bool all_ranks = false;  ///< Of this rank's memory, as far as others record there.
  Bytes limit{std::uint64_t{1} << 30U};
};

/// Thread: one at a time.
class Trace {
 public:
  /// Of what the recorder writes from now on. Fails: not_initialized (nothing is recorded); as
  /// TraceFile::create.
  static Result<std::unique_ptr<Trace>> start(TraceOptions options);

  /// Writes what has been recorded and ends. Blocks: for the disk.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::string& path() const;

 private:
  class Impl;
  explicit Trace(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::timeline
