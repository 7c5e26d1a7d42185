// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/lanes.hpp"

#include "runtime/bucket/adasum.hpp"

namespace horo::runtime {

std::uint64_t elements_from(const Bucket& bucket, std::size_t part, int rank, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const auto& p = bucket.parts[part];
  if (bucket.like.kind == Kind::allgather) return bucket.rows[part * n + r] * p.row_elements;
  if (bucket.like.kind != Kind::alltoall) return p.elements;
  const auto& rows = bucket.peers[part * n + r];
  return rows.received == 0 ? 0 : (rows.before + rows.received) * p.row_elements;
}

void Lanes::begin_lane() {
  before_.push_back(0);
}

void Lanes::add(const Stretch& stretch, std::uint64_t room) {
  stretches_.push_back(stretch);
  before_.push_back(before_.back() + room);
  longest_ = std::max(longest_, before_.back());
}

Lanes::Lanes(const Bucket& bucket, int ranks) : parts_(bucket.parts.size()) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto rows = [&](std::size_t part, std::size_t rank) {
    return bucket.rows[part * n + rank] * bucket.parts[part].row_elements;
  };
  // Elements of the ranks before `rank`.
  const auto rows_before = [&](std::size_t part, std::size_t rank) {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r < rank; ++r) sum += rows(part, r);
    return sum;
  };
  switch (bucket.like.kind) {
    case Kind::barrier:
    case Kind::join:
      begin_lane();
      for (std::size_t p = 0; p < parts_; ++p) add({}, 0);
      break;
    case Kind::allreduce:
    case Kind::broadcast:
      if (bucket.like.op == ReduceOp::adasum && bucket.like.kind == Kind::allreduce) {
        add_slices(bucket, ranks);
        break;
      }
      begin_lane();
      for (const auto& part : bucket.parts) add({.count = part.elements}, part.elements);
      break;
    case Kind::allgather:
    case Kind::reducescatter:
      for (std::size_t r = 0; r < n; ++r) {
        begin_lane();
        for (std::size_t p = 0; p < parts_; ++p) {
          const auto start = rows_before(p, r);
          const bool gathers = bucket.like.kind == Kind::allgather;
          add({.in = gathers ? 0 : start, .out = gathers ? start : 0, .count = rows(p, r)},
              rows(p, r));
        }
      }
      break;
    case Kind::alltoall:
      add_alltoall(bucket, n);
      break;
  }
}

void Lanes::add_slices(const Bucket& bucket, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    begin_lane();
    for (const auto& part : bucket.parts) {
      const auto slice = adasum_slice(part.elements, ranks, r);
      add({.in = slice.first, .out = slice.first, .count = slice.count},
          (slice.count + kAdasumUnit - 1) / kAdasumUnit * kAdasumUnit);
    }
  }
}

void Lanes::add_alltoall(const Bucket& bucket, std::size_t ranks) {
  std::vector<std::uint64_t> passed(parts_);  // Elements of each part for the ranks before.
  for (std::size_t to = 0; to < ranks; ++to) {
    begin_lane();
    for (std::size_t p = 0; p < parts_; ++p) {
      const auto count = bucket.peers[p * ranks + to].sent * bucket.parts[p].row_elements;
      add({.in = passed[p], .count = count}, count);
      passed[p] += count;
    }
  }
  passed.assign(parts_, 0);
  for (std::size_t from = 0; from < ranks; ++from) {
    begin_lane();
    for (std::size_t p = 0; p < parts_; ++p) {
      const auto& rows = bucket.peers[p * ranks + from];
      const auto count = rows.received * bucket.parts[p].row_elements;
      add({.in = rows.before * bucket.parts[p].row_elements, .out = passed[p], .count = count},
          count);
      passed[p] += count;
    }
  }
  longest_ = std::max(longest_, bucket.longest);
}

}  // namespace horo::runtime
