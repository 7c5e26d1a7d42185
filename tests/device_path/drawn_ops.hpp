// SPDX-License-Identifier: Apache-2.0
// Collectives that all ranks draw alike from a seed, with the results that they must have.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "horo/horo.h"
#include "tests/device_path/gpu.hpp"

namespace horo::tests {

/// The ranks of a process set.
struct DrawnSet {
  horo_set id = HORO_WORLD;
  std::vector<int> ranks;
  int position = -1;  ///< This rank's; -1: not a member.
};

/// All ranks.
DrawnSet world();

/// One collective: each rank's input is a function of the rank and the number.
struct DrawnOp {
  int number = 0;
  horo_kind kind = HORO_ALLREDUCE;
  horo_reduce_op op = HORO_SUM;
  horo_dtype dtype = HORO_FLOAT32;
  int root = 0;           ///< Position in the set.
  std::int64_t rows = 0;  ///< Position 0 has them; allgather: position p has `rows + p`.
  std::int64_t row = 1;   ///< Elements.
  bool in_place = false;
  bool on_device = true;
  int group = 0;  ///< Not 0: its number; all of the group have the same set.
  std::size_t set = 0;

  std::int64_t rows_of(int position) const;

  std::int64_t elements(int position) const { return rows_of(position) * row; }

  /// alltoall: the rows from one position to another.
  std::int64_t split(const DrawnSet& of, int from, int to) const;
};

std::size_t size_of(horo_dtype dtype);

/// Small whole numbers, whose sums and products are exact.
std::vector<std::uint8_t> input_of(const DrawnOp& op, int rank, int position);

/// The rank must have this in the end.
std::vector<std::uint8_t> result_of(const DrawnOp& op, const DrawnSet& set);

/// `count` of them over these sets.
std::vector<DrawnOp> draw(std::mt19937_64& random, int count, const std::vector<DrawnSet>& sets);

/// One that is under way on this rank.
class RunningOp {
 public:
  /// Submits it; `stream` has written the input.
  RunningOp(const Gpu& gpu, const DrawnOp& op, const DrawnSet& set, void* stream,
            const std::string& name);

  /// `by_stream`: the stream waits, else the host does. Ends the process when the result is wrong.
  void finish(bool by_stream);

  /// Blocks: until the operation is launched. `stream` waits for it from then on.
  void await_launch(void* stream) const;

  /// The input in device memory.
  void* input() const { return in_; }

  /// The stream waits for the operation and reads its result. Ends the process when that is wrong.
  void check_on_stream();

  /// The bytes of the result, when the host has waited for it. Frees the memory.
  std::vector<std::uint8_t> take();

  /// The same by the host. False: a rank was lost meanwhile.
  bool finish_unless_lost();

  /// The status with which it ends, without a look at the result.
  horo_status end();

  horo_op handle() const { return handle_; }

  /// Frees the memory; for an operation that is done.
  void release();

 private:
  void declare(const std::string& name);
  void submit();
  std::vector<std::uint8_t> read(bool by_stream);
  void check_result(const std::vector<std::uint8_t>& got) const;

  const Gpu& gpu_;
  const DrawnOp op_;
  const DrawnSet& set_;
  void* stream_;
  horo_tensor tensor_ = 0;
  horo_op handle_ = 0;
  void* in_ = nullptr;
  void* out_ = nullptr;
  std::vector<std::uint8_t> host_in_;
  std::vector<std::uint8_t> host_out_;
  std::vector<std::int64_t> splits_;
};

}  // namespace horo::tests
