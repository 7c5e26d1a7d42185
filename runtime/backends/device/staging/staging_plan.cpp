// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staging/staging_plan.hpp"

#include <algorithm>
#include <numeric>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kAlign = 64;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

class Planner {
 public:
  Planner(const Bucket& bucket, int position, int ranks)
      : bucket_(bucket), position_(position), ranks_(static_cast<std::size_t>(ranks)) {}

  std::vector<StagedPiece> plan() {
    const auto& like = bucket_.like;
    const bool cut = in_place() && like.op != ReduceOp::adasum;
    const auto most = cut ? kPieceBytes / size_of(like.dtype) : ~std::uint64_t{0};
    std::uint64_t room = 0;
    for (std::size_t p = 0; p < bucket_.parts.size(); ++p) {
      const auto elements = bucket_.parts[p].elements;
      std::uint64_t first = 0;
      // A tensor of which this rank brings nothing may still give it something.
      while (first < elements || (first == 0 && !in_place())) {
        if (room == 0) {
          pieces_.emplace_back();
          room = most;
        }
        const auto count = std::min(room, elements - first);
        add(p, first, count);
        first += count;
        room -= count;
        if (!in_place()) break;
      }
    }
    return std::move(pieces_);
  }

 private:
  /// Input and result are equally long, and may lie in the same place.
  bool in_place() const {
    return bucket_.like.kind == Kind::broadcast || bucket_.like.kind == Kind::allreduce;
  }

  std::uint64_t in_bytes(std::uint64_t count) const {
    const auto& like = bucket_.like;
    if (like.kind == Kind::broadcast && like.root != position_) return 0;
    return count * size_of(like.dtype);
  }

  /// The elements of a result whose length differs from that of the input.
  std::uint64_t received(std::size_t part) const {
    const auto row = bucket_.parts[part].row_elements;
    if (bucket_.like.kind == Kind::reducescatter)
      return row * bucket_.rows[part * ranks_ + static_cast<std::size_t>(position_)];
    std::uint64_t rows = 0;
    for (std::size_t r = part * ranks_; r < (part + 1) * ranks_; ++r)
      rows += bucket_.like.kind == Kind::allgather ? bucket_.rows[r] : bucket_.peers[r].received;
    return row * rows;
  }

  void add(std::size_t part, std::uint64_t first, std::uint64_t count) {
    auto& piece = pieces_.back();
    const auto element = size_of(bucket_.like.dtype);
    StagedRun run{.part = part, .first = first, .count = count, .in = piece.bytes};
    run.in_bytes = in_bytes(count);
    run.out_bytes = (in_place() ? count : received(part)) * element;
    run.out = in_place() ? run.in : run.in + aligned(run.in_bytes);
    piece.bytes = run.out + aligned(run.out_bytes);
    piece.runs.push_back(run);
  }

  const Bucket& bucket_;
  const int position_;
  const std::size_t ranks_;
  std::vector<StagedPiece> pieces_;
};

}  // namespace

std::vector<StagedPiece> plan_staging(const Bucket& bucket, int position, int ranks) {
  return Planner(bucket, position, ranks).plan();
}

}  // namespace horo::runtime
