// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchy.hpp"

#include <algorithm>

namespace horo::runtime {

namespace {

/// First position of each host, and one past the last rank.
Result<std::vector<int>> host_begins(const Communicator& world) {
  std::vector<int> begins;
  for (int r = 0; r < world.size(); ++r) {
    if (r > 0 && world.host_of(r) == world.host_of(r - 1)) continue;
    for (const int begin : begins) {
      if (world.host_of(begin) != world.host_of(r)) continue;
      return fail(Errc::invalid_argument,
                  "positions {} and {} are on one host and others between them are not", begin, r);
    }
    begins.push_back(r);
  }
  begins.push_back(world.size());
  return begins;
}

/// Share of `local_rank` in `count` elements.
std::uint64_t share(std::uint64_t count, const Hierarchy& hierarchy, int local_rank) {
  return local_rank < hierarchy.owners ? share_of(count, hierarchy.owners, local_rank).count : 0;
}

}  // namespace

Result<Hierarchy> hierarchy_of(const Communicator& world) {
  HORO_TRY_STATUS(check(world));
  HORO_TRY(const auto begins, host_begins(world));
  Hierarchy hierarchy{
      .hosts = static_cast<int>(begins.size()) - 1, .ranks = world.size(), .owners = world.size()};
  for (std::size_t h = 0; h + 1 < begins.size(); ++h) {
    const int size = begins[h + 1] - begins[h];
    hierarchy.owners = std::min(hierarchy.owners, size);
    if (world.position < begins[h] || world.position >= begins[h + 1]) continue;
    hierarchy.local_ranks = size;
    hierarchy.local_rank = world.position - begins[h];
  }
  return hierarchy;
}

std::optional<Communicator> across_hosts(const Communicator& world, const Hierarchy& hierarchy) {
  const auto begins = host_begins(world);
  if (!hierarchy.owns() || !begins) return std::nullopt;
  auto result = world;
  result.members.clear();
  result.hosts.clear();
  result.name += fmt::format("/across/{}", hierarchy.local_rank);
  for (std::size_t h = 0; h + 1 < begins->size(); ++h) {
    const int position = (*begins)[h] + hierarchy.local_rank;
    if (position == world.position) result.position = static_cast<int>(h);
    result.members.push_back(world.members[static_cast<std::size_t>(position)]);
    result.hosts.push_back(static_cast<int>(h));
  }
  return result;
}

std::vector<std::vector<Cut>> cut_bucket(const Bucket& bucket, std::uint64_t bytes) {
  const auto most = std::max<std::uint64_t>(1, bytes / size_of(bucket.like.dtype));
  std::vector<std::vector<Cut>> stretches;
  std::uint64_t room = 0;
  for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
    for (std::uint64_t first = 0; first < bucket.parts[p].elements;) {
      if (room == 0) {
        stretches.emplace_back();
        room = most;
      }
      const auto count = std::min(room, bucket.parts[p].elements - first);
      stretches.back().push_back({.part = p, .first = first, .count = count});
      first += count;
      room -= count;
    }
  }
  return stretches;
}

std::uint64_t slice_elements(const std::vector<Cut>& cuts, const Hierarchy& hierarchy) {
  std::uint64_t sum = 0;
  for (const auto& cut : cuts) sum += share(cut.count, hierarchy, hierarchy.local_rank);
  return sum;
}

Leg make_leg(const Bucket& bucket, const std::vector<Cut>& cuts, const Hierarchy& hierarchy,
             std::byte* slice) {
  const auto element = size_of(bucket.like.dtype);
  Leg leg;
  leg.scatter.like = leg.across.like = leg.gather.like = bucket.like;
  leg.scatter.like.kind = Kind::reducescatter;
  leg.gather.like.kind = Kind::allgather;
  leg.scatter.like.postscale = leg.across.like.prescale = 1;
  if (bucket.like.op == ReduceOp::average) {
    leg.scatter.like.op = leg.across.like.op = ReduceOp::sum;
    leg.across.like.postscale = bucket.like.postscale / hierarchy.ranks;
  }
  auto* to = slice;
  for (const auto& cut : cuts) {
    const auto& part = bucket.parts[cut.part];
    const auto mine = share(cut.count, hierarchy, hierarchy.local_rank);
    leg.scatter.parts.push_back({.id = part.id,
                                 .in = static_cast<const std::byte*>(part.in) + cut.first * element,
                                 .out = to,
                                 .elements = cut.count,
                                 .row_elements = 1});
    leg.gather.parts.push_back({.id = part.id,
                                .in = to,
                                .out = static_cast<std::byte*>(part.out) + cut.first * element,
                                .elements = mine,
                                .row_elements = 1});
    for (int r = 0; r < hierarchy.local_ranks; ++r)
      leg.scatter.rows.push_back(share(cut.count, hierarchy, r));
    to += mine * element;
  }
  leg.gather.rows = leg.scatter.rows;
  const auto elements = slice_elements(cuts, hierarchy);
  if (elements != 0) leg.across.parts.push_back({.in = slice, .out = slice, .elements = elements});
  leg.across.like.elements = elements;
  return leg;
}

bool can_run_in_parts(const Signature& like) {
  if (like.op == ReduceOp::adasum) return false;
  switch (like.dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
      return true;
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::boolean:
      break;
  }
  return like.op != ReduceOp::average;
}

}  // namespace horo::runtime
