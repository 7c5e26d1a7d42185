// SPDX-License-Identifier: Apache-2.0
// One collective drawn at random, and the results that each rank must get, computed without the
// runtime's code.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/sim_job.hpp"
#include "tests/unit/kernels/reference.hpp"

namespace horo::sim {

/// The operation that all ranks submit under one name.
struct DrawnOp {
  std::string name;
  std::vector<runtime::Signature> signatures;     ///< By rank.
  std::vector<tests::Bytes> inputs;               ///< By rank.
  std::vector<std::vector<std::int64_t>> splits;  ///< By rank; alltoall.

  runtime::Kind kind() const { return signatures.front().kind; }

  std::string text() const;

  /// The bytes and the row counts that `rank` must get.
  tests::Bytes expected(int rank) const;
  std::vector<std::int64_t> expected_rows(int rank) const;
};

/// Any kind, type, operation, factors and shape; some are empty, some larger than a ring.
DrawnOp draw_op(int ranks, std::mt19937_64& random, const std::string& name);

/// Replaces the inputs by small whole numbers, whose sums and products are exact in every type: the
/// same bits in any order.
void make_exact(DrawnOp& op, std::mt19937_64& random);

/// Adds `rank`'s part to the job, with buffers drawn at random: arena or not, in place or not, with
/// enough room for the result, with too little, or with none.
void add_drawn(SimJob& job, int rank, const DrawnOp& op);

/// Compares the completed operation's result with the expected one; empty when equal.
std::string difference(const DrawnOp& op, int rank, Buffer& buffer);

}  // namespace horo::sim
