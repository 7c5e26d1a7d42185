// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/submission.hpp"

namespace horo::runtime {

namespace {

Status check_splits(const Signature& s, std::span<const std::int64_t> splits, int size) {
  const auto rows = s.rows();
  if (splits.empty()) {
    if (rows % static_cast<std::uint64_t>(size) == 0) return {};
    return fail(Errc::invalid_argument,
                "{}: {} rows cannot be split equally over {} ranks; give splits", describe(s), rows,
                size);
  }
  if (splits.size() != static_cast<std::size_t>(size)) {
    return fail(Errc::invalid_argument, "{}: {} splits for {} ranks; give one for each, or none",
                describe(s), splits.size(), size);
  }
  std::uint64_t sum = 0;
  for (std::size_t r = 0; r < splits.size(); ++r) {
    if (splits[r] < 0) {
      return fail(Errc::invalid_argument, "{}: split {} for rank {} is negative", describe(s),
                  splits[r], r);
    }
    const auto split = static_cast<std::uint64_t>(splits[r]);
    if (split > rows - sum) {
      return fail(Errc::invalid_argument,
                  "{}: the splits up to rank {} ask for more than its {} rows", describe(s), r,
                  rows);
    }
    sum += split;
  }
  return {};
}

Status check_places(const Signature& s, const Submission& given, int rank, int size) {
  if (s.kind == Kind::alltoall && overlap(given.in, s.bytes(), given.out, given.room))
    return fail(Errc::invalid_argument, "{}: the output overlaps the input", describe(s));
  if (s.kind != Kind::reducescatter || given.out == nullptr) return {};
  const auto mine = share_of(s.rows(), size, rank);
  const auto row = s.row_elements * size_of(s.dtype);
  const auto* own = static_cast<const std::byte*>(given.in) + mine.first * row;
  if (given.out == own || !overlap(given.in, s.bytes(), given.out, mine.count * row)) return {};
  return fail(Errc::invalid_argument,
              "{}: the output overlaps the input; in place it is where this rank's rows begin, "
              "row {} of the input",
              describe(s), mine.first);
}

}  // namespace

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes != 0 && b_bytes != 0 && x < y + b_bytes && y < x + a_bytes;
}

Status check(const Signature& s, const Submission& given, int rank, int size) {
  if (!given.splits.empty() && s.kind != Kind::alltoall)
    return fail(Errc::invalid_argument, "{} with splits; only alltoall has them", describe(s));
  if (s.kind == Kind::alltoall) HORO_TRY_STATUS(check_splits(s, given.splits, size));
  if (moves_nothing(s.kind)) return {};
  if (s.memory != given.memory) {
    return fail(Errc::invalid_argument, "{} is declared in {} and submitted in {}", describe(s),
                name(s.memory), name(given.memory));
  }
  if (s.elements == 0) return {};
  const bool reads = s.kind != Kind::broadcast || s.root == rank;
  const bool writes = s.kind == Kind::allreduce || s.kind == Kind::broadcast;
  if (reads && given.in == nullptr)
    return fail(Errc::invalid_argument, "{} without an input buffer", describe(s));
  if (writes && given.out == nullptr)
    return fail(Errc::invalid_argument, "{} without an output buffer", describe(s));
  return check_places(s, given, rank, size);
}

}  // namespace horo::runtime
