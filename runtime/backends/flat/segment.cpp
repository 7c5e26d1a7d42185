// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/flat/segment.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

namespace {

// Smaller messages are dominated by their fixed cost; larger segments do not fit the cache.
constexpr std::uint64_t kLeastSegment = 1U << 20U;
constexpr std::uint64_t kLeastMessage = 128U << 10U;
constexpr std::uint64_t kMostSegment = 16U << 20U;

/// The same stretch of `count` lanes from `lane` on, one behind the other.
std::vector<Stretch> cut(const Lanes& lanes, std::size_t lane, std::size_t count,
                         std::uint64_t first, const std::pair<std::uint64_t, std::uint64_t>& unit) {
  std::vector<Stretch> stretches;
  std::uint64_t offset = 0;
  for (const auto end = lane + count; lane < end; ++lane) {
    const auto total = lanes.total(lane);
    const auto elements = first < total ? std::min(unit.first, total - first) : 0;
    stretches.push_back({lane, first, elements, offset});
    offset += elements * unit.second;
  }
  return stretches;
}

void shift(std::vector<Stretch>& stretches, std::uint64_t offset) {
  for (auto& stretch : stretches) stretch.offset += offset;
}

std::vector<std::uint64_t> counts_of(const std::vector<Stretch>& stretches, std::uint64_t unit) {
  std::vector<std::uint64_t> counts;
  for (const auto& stretch : stretches) counts.push_back(stretch.count * unit);
  return counts;
}

Partial partial_of(const Signature& like) {
  const bool average = like.op == ReduceOp::average;
  switch (like.dtype) {
    case DType::f16:
      return average || like.op == ReduceOp::product || like.postscale != 1 ? Partial::wrong
                                                                            : Partial::rounded;
    case DType::bf16:
      return Partial::rounded;
    case DType::f32:
    case DType::f64:
      return Partial::exact;
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::boolean:
      break;
  }
  return average ? Partial::wrong : Partial::exact;
}

}  // namespace

std::uint64_t segment_bytes(int size) {
  return std::clamp(static_cast<std::uint64_t>(size) * kLeastMessage, kLeastSegment, kMostSegment);
}

std::uint64_t segment_unit(const Bucket& bucket, int size, std::uint64_t bytes) {
  const auto kind = bucket.like.kind;
  const bool one = kind == Kind::allreduce || kind == Kind::broadcast;
  const auto ranks = static_cast<std::uint64_t>(size);
  const auto lanes = one ? 1 : ranks;
  // Each rank of a broadcast's chain waits until a whole segment has passed all ranks before it.
  if (kind == Kind::broadcast) bytes = std::min(bytes, kLeastSegment);
  return std::max<std::uint64_t>(1, bytes / lanes / size_of(bucket.like.dtype));
}

Status cut_bucket(Bucket bucket, const Mesh& mesh, std::uint64_t bytes, std::string_view backend,
                  CutBucket& cut) {
  const auto& like = bucket.like;
  if (bucket.device >= 0)
    return fail(Errc::unsupported, "backend '{}' moves host memory only", backend);
  if (reduces(like.kind) && kernels::reduce_kernel(like.dtype, like.op) == nullptr) {
    return fail(Errc::unsupported, "backend '{}' has no {} of {}", backend, name(like.op),
                name(like.dtype));
  }
  cut.lanes = Lanes(bucket, mesh.size);
  cut.unit = segment_unit(bucket, mesh.size, bytes);
  cut.segments = like.kind == Kind::barrier ? 1 : (cut.lanes.longest() + cut.unit - 1) / cut.unit;
  cut.left = cut.segments;
  cut.bucket = std::move(bucket);
  return {};
}

Segment make_segment(const Bucket& bucket, const Lanes& lanes, const Mesh& mesh, std::uint64_t unit,
                     std::uint64_t index) {
  Segment segment;
  const auto me = static_cast<std::size_t>(mesh.position);
  const auto n = static_cast<std::size_t>(mesh.size);
  const auto element = size_of(bucket.like.dtype);
  const auto stretches = [&](std::size_t lane, std::size_t count) {
    return cut(lanes, lane, count, index * unit, {unit, element});
  };
  switch (bucket.like.kind) {
    case Kind::allreduce: {
      segment.packed = segment.unpacked = stretches(0, 1);
      const auto count = segment.packed.front().count;
      const auto algorithm = choose_allreduce(mesh, count * element, partial_of(bucket.like));
      segment.schedule = make_allreduce(mesh, algorithm, count, element);
      shift(segment.unpacked, segment.schedule.result);
      break;
    }
    case Kind::broadcast: {
      const auto one = stretches(0, 1);
      segment.schedule = make_broadcast(mesh, bucket.like.root, one.front().count * element);
      if (mesh.position == bucket.like.root) segment.packed = one;
      const bool there = std::all_of(bucket.parts.begin(), bucket.parts.end(),
                                     [](const Part& part) { return part.in == part.out; });
      if (mesh.position != bucket.like.root || !there) segment.unpacked = one;
      break;
    }
    case Kind::allgather:
      segment.unpacked = stretches(0, n);
      segment.packed = {segment.unpacked[me]};
      segment.schedule = make_allgather(mesh, counts_of(segment.unpacked, element));
      break;
    case Kind::reducescatter:
      segment.packed = stretches(0, n);
      segment.unpacked = {segment.packed[me]};
      segment.schedule =
          make_reducescatter(mesh, counts_of(segment.packed, 1), element, partial_of(bucket.like));
      segment.unpacked.front().offset = segment.schedule.result;
      break;
    case Kind::alltoall:
      segment.packed = stretches(0, n);
      segment.unpacked = stretches(n, n);
      segment.schedule = make_alltoall(mesh, counts_of(segment.packed, element),
                                       counts_of(segment.unpacked, element));
      shift(segment.unpacked, segment.schedule.result);
      segment.unpacked[me].offset = segment.packed[me].offset;
      break;
    case Kind::barrier:
    case Kind::join:
      segment.schedule = make_barrier(mesh);
      break;
  }
  return segment;
}

void pack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch, std::byte* memory) {
  const auto element = size_of(bucket.like.dtype);
  auto* to = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    const auto* from = static_cast<const std::byte*>(bucket.parts[piece.part].in);
    std::memcpy(to + piece.in_chunk * element, from + piece.in * element, piece.count * element);
  });
}

void unpack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch,
            const std::byte* memory) {
  const auto element = size_of(bucket.like.dtype);
  const auto* from = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    auto* to = static_cast<std::byte*>(bucket.parts[piece.part].out);
    std::memcpy(to + piece.out * element, from + piece.in_chunk * element, piece.count * element);
  });
}

}  // namespace horo::runtime
