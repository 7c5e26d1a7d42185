// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace horo::runtime {

namespace {

/// The positions of each host's ranks; hosts are in the order of their first ranks.
std::vector<std::vector<int>> by_host(const Communicator& world) {
  std::vector<std::vector<int>> hosts;
  std::map<int, std::size_t> index;
  for (int r = 0; r < world.size(); ++r) {
    const auto [at, fresh] = index.emplace(world.host_of(r), hosts.size());
    if (fresh) hosts.emplace_back();
    hosts[at->second].push_back(r);
  }
  return hosts;
}

/// How many of `count` elements `local_rank` owns.
std::uint64_t share(std::uint64_t count, const Hierarchy& hierarchy, int local_rank) {
  return local_rank < hierarchy.owners ? share_of(count, hierarchy.owners, local_rank).count : 0;
}

/// The part of the result's factor that is applied to a host's sum before it becomes float16, so
/// that the average of a host fits where its sum does not. It is a power of two, which changes
/// subnormals only.
double early_factor(const Signature& like, const Hierarchy& hierarchy) {
  if (dtype_between_hosts(like.wire, like.dtype) != DType::f16) return 1;
  const bool average = like.op == ReduceOp::average;
  const double factor = std::abs(like.postscale) / (average ? hierarchy.most_local : 1);
  return std::isnormal(factor) ? std::exp2(std::floor(std::log2(factor))) : 1;
}

/// A piece of the slice, in place.
struct SlicePiece {
  std::byte* at;
  std::uint64_t elements;
};

/// Adds this rank's piece of a cut to the step between hosts. Pieces are one part, because they lie
/// one behind the other, unless each has a remainder elsewhere.
void add_across(const Part& part, const Cut& cut, const Hierarchy& hierarchy,
                const SlicePiece& piece, Bucket& across) {
  const auto first = cut.first + share_of(cut.count, hierarchy.owners, hierarchy.local_rank).first;
  const auto piece_of = [&](float* of_all) { return of_all == nullptr ? nullptr : of_all + first; };
  auto* const remainder = piece_of(part.remainder);
  if (remainder == nullptr && !across.parts.empty() && across.parts.back().remainder == nullptr) {
    across.parts.back().elements += piece.elements;
    return;
  }
  across.parts.push_back({.in = piece.at,
                          .out = piece.at,
                          .elements = piece.elements,
                          .remainder = remainder,
                          .result_remainder = piece_of(part.result_remainder)});
}

/// Gives each step its part of the operation.
void divide(const Signature& like, const Hierarchy& hierarchy, Leg& leg) {
  leg.scatter.like = leg.across.like = leg.gather.like = like;
  leg.scatter.like.kind = Kind::reducescatter;
  leg.gather.like.kind = Kind::allgather;
  leg.scatter.like.wire = leg.gather.like.wire = WireDType::none;
  const auto early = early_factor(like, hierarchy);
  const bool rounds_between = like.wire != WireDType::none;
  leg.scatter.like.postscale = rounds_between ? 1 : early;
  leg.across.wire_scale = rounds_between ? early : 1;
  leg.across.like.prescale = 1;
  if (like.op == ReduceOp::average) {
    leg.scatter.like.op = leg.across.like.op = ReduceOp::sum;
    leg.across.like.postscale /= hierarchy.ranks;
  }
  leg.across.like.postscale /= early;
}

}  // namespace

Result<Hierarchy> hierarchy_of(const Communicator& world) {
  HORO_TRY_STATUS(check(world));
  const auto hosts = by_host(world);
  Hierarchy hierarchy{
      .hosts = static_cast<int>(hosts.size()), .ranks = world.size(), .owners = world.size()};
  for (const auto& ranks : hosts) {
    hierarchy.owners = std::min(hierarchy.owners, static_cast<int>(ranks.size()));
    hierarchy.most_local = std::max(hierarchy.most_local, static_cast<int>(ranks.size()));
    const auto me = std::find(ranks.begin(), ranks.end(), world.position);
    if (me == ranks.end()) continue;
    hierarchy.local_ranks = static_cast<int>(ranks.size());
    hierarchy.local_rank = static_cast<int>(me - ranks.begin());
  }
  return hierarchy;
}

std::optional<Communicator> across_hosts(const Communicator& world, const Hierarchy& hierarchy) {
  if (!hierarchy.owns()) return std::nullopt;
  auto result = world;
  result.members.clear();
  result.hosts.clear();
  result.name += fmt::format("/across/{}", hierarchy.local_rank);
  ++result.slot;  // A rank is in one of the communicators across hosts only.
  for (const auto& ranks : by_host(world)) {
    const int position = ranks[static_cast<std::size_t>(hierarchy.local_rank)];
    if (position == world.position) result.position = result.size();
    result.hosts.push_back(result.size());
    result.members.push_back(world.members[static_cast<std::size_t>(position)]);
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
  divide(bucket.like, hierarchy, leg);
  leg.across.small_message = bucket.small_message;
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
    if (mine != 0) add_across(part, cut, hierarchy, {to, mine}, leg.across);
    for (int r = 0; r < hierarchy.local_ranks; ++r)
      leg.scatter.rows.push_back(share(cut.count, hierarchy, r));
    to += mine * element;
  }
  leg.gather.rows = leg.scatter.rows;
  leg.across.like.elements = slice_elements(cuts, hierarchy);
  return leg;
}

bool can_run_in_parts(const Signature& like) {
  if (like.op == ReduceOp::adasum) return false;
  switch (like.dtype) {
    case DType::f16:
      return like.op != ReduceOp::product;
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
