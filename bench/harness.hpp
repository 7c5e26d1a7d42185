// SPDX-License-Identifier: Apache-2.0
// Measures a contender: checks its sums once per case, then times steps that follow each other at
// once. All measured C++ programs share this code, so that they differ only in what is measured.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/contender.hpp"

namespace horo::bench {

/// The command line that bench/allreduce and bench/collectives pass to every program.
struct Options {
  std::string cases;  ///< File of lines "<name> <elements> <elements> ...", one case each.
  /// File that rank 0 appends one JSON object per case to; empty: standard output.
  std::string out;
  double seconds = 0.3;        ///< Time to spend on the steps of one case.
  int ranks = 2;               ///< For programs that start their own ranks.
  std::string memory = "own";  ///< "own": from malloc; "shared": from the runtime's allocator.
  /// > 0: number of sessions in turn, with the measured part and without, by with_it.
  int turns = 0;
  /// The measured part: a trace of all ranks in this file; if empty, the recorder.
  std::string trace;
  /// > 0: no measurement; one step, a line "ready", then this many seconds of nothing.
  double idle = 0;
};

/// Whether the measured part is on in a turn: on, off, off, on, and so forth. bench/timeline relies
/// on this order.
constexpr bool with_it(int turn) {
  return turn % 4 == 0 || turn % 4 == 3;
}

/// Fails: invalid_argument, naming the option and its value.
Result<Options> parse_options(int argc, char** argv);

/// Fails: not_found, invalid_argument, naming file and line.
Result<std::vector<Workload>> read_workloads(const std::string& path);

struct Measurement {
  std::vector<double> seconds;  ///< Time of each step, ascending.
  double switches_per_step = 0;
  std::optional<double> entries_per_step;
};

/// Times `step` repeatedly for about `budget` seconds, equally often on every rank: `agree` gives
/// rank 0's number to all. `entries` counts log entries, if the contender has a log.
Result<Measurement> measure(const std::function<Status()>& step,
                            const std::function<Result<double>(double)>& agree,
                            const std::function<std::optional<std::uint64_t>()>& entries,
                            double budget);

/// The row of a case as JSON.
std::string row(const Workload& workload, const Measurement& measurement);

/// Appends a line to a file, or to standard output if `path` is empty.
Status write_line(const std::string& path, const std::string& line);

/// Runs all cases of `options`. Blocks: until they are done.
/// Fails: as the contender; protocol when a sum is wrong.
Status run_cases(Contender& contender, const Options& options);

/// Returns 0, or prints the error in one line on standard error and returns 1.
int exit_code_of(const Status& status, const char* program);

}  // namespace horo::bench
