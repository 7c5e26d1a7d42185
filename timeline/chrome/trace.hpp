// SPDX-License-Identifier: Apache-2.0
// Writes the Chrome trace of a running job. A thread of its own reads the rings and writes the
// file, so that recording threads never wait.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::timeline {

struct TraceOptions {
  std::string path;
  bool mark_cycles = false;
  /// Show all ranks that record into this rank's memory with rows of their own. Otherwise only the
  /// times at which they submit are shown, in this rank's rows.
  bool all_ranks = false;
  /// A file of this size is renamed to <path>.1, and a new one begins.
  Bytes limit{std::uint64_t{1} << 30U};
};

/// Thread: one at a time.
class Trace {
 public:
  /// Starts a trace of the records from now on. Fails: not_initialized (nothing is recorded); as
  /// TraceFile::create.
  static Result<std::unique_ptr<Trace>> start(TraceOptions options);

  /// Writes the remaining records and ends. Blocks: for the disk.
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
