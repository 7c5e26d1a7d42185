// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/process/kept_program.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::discovery {

/// How a short program ended, and what it has printed.
struct ProgramEnd {
  std::string output;
  std::string errors;  ///< The last part of its standard error.
  int wait_status = 0;
};

/// A short program that runs, without input. It ends with this object and with this process.
class RunningProgram {
 public:
  /// Fails: as KeptProgram::start. Blocks: until it has been executed.
  static Result<RunningProgram> start(const std::vector<std::string>& command);

  /// Call once. Fails: timed_out, cancelled, unavailable (the process that keeps it was killed),
  /// resource_exhausted (it printed more than 64 MiB), io. Blocks: until it has ended and closed
  /// its outputs, at most until `limit`.
  Result<ProgramEnd> hear(WaitLimit limit);

  /// Tells it to end now. The destructor waits for that.
  void release() { program_.release(); }

 private:
  RunningProgram(KeptProgram program, UniqueFd out, UniqueFd err)
      : program_(std::move(program)), out_(std::move(out)), err_(std::move(err)) {}

  KeptProgram program_;
  UniqueFd out_;
  UniqueFd err_;
};

/// Runs a short program and returns its standard output. The program gets no input; at `limit`
/// it and its process group are killed. Blocks: until it has ended, at most until `limit`.
/// Fails: not_found, permission_denied, timed_out, cancelled, unavailable (it failed: how, and the
/// end of its standard error), resource_exhausted (it printed more than 64 MiB), io.
Result<std::string> output_of(const std::vector<std::string>& command, WaitLimit limit);

}  // namespace horo::discovery
