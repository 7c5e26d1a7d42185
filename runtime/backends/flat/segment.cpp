// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/flat/segment.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/backends/flat/combine.hpp"
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
  const auto element = size_of(moved_between_hosts(bucket.like).dtype);
  const bool one = kind == Kind::allreduce || kind == Kind::broadcast;
  const auto ranks = static_cast<std::uint64_t>(size);
  const auto lanes = one ? 1 : ranks;
  // Each rank of a broadcast's chain waits until a whole segment has passed all ranks before it.
  if (kind == Kind::broadcast) bytes = std::min(bytes, kLeastSegment);
  return std::max<std::uint64_t>(1, bytes / lanes / element);
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
  cut.moved = moved_between_hosts(like);
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
  const auto moved = moved_between_hosts(bucket.like);
  const auto element = size_of(moved.dtype);
  const auto stretches = [&](std::size_t lane, std::size_t count) {
    return cut(lanes, lane, count, index * unit, {unit, element});
  };
  switch (bucket.like.kind) {
    case Kind::allreduce: {
      segment.packed = segment.unpacked = stretches(0, 1);
      const auto count = segment.packed.front().count;
      const auto algorithm =
          choose_allreduce(mesh, count * element, partial_of(moved), bucket.small_message);
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
          make_reducescatter(mesh, counts_of(segment.packed, 1), element, partial_of(moved));
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

namespace {

void pack_rounded(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch,
                  std::byte* memory) {
  const auto& like = bucket.like;
  const kernels::Encoding how{.dtype = dtype_between_hosts(like.wire, like.dtype),
                              .before = static_cast<float>(like.prescale),
                              .scale = static_cast<float>(bucket.wire_scale)};
  const auto encode = kernels::encode_kernel(how.dtype);
  auto* const to = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    const auto& part = bucket.parts[piece.part];
    encode(how, to + piece.in_chunk * size_of(how.dtype),
           static_cast<const float*>(part.in) + piece.in,
           part.remainder == nullptr ? nullptr : part.remainder + piece.in, piece.count);
  });
}

void unpack_rounded(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch,
                    const std::byte* memory) {
  const auto dtype = dtype_between_hosts(bucket.like.wire, bucket.like.dtype);
  const auto decode = kernels::decode_kernel(dtype);
  const auto* const from = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    decode(static_cast<float*>(bucket.parts[piece.part].out) + piece.out,
           from + piece.in_chunk * size_of(dtype), piece.count);
  });
}

}  // namespace

namespace {

/// Whether the elements have a remainder of their own: of the algorithms, those in which one rank
/// adds an element up for all write the sum where the input was.
bool keeps_result_remainders(const CutBucket& cut, const Segment& segment, const Combine& combine) {
  const auto& parts = cut.bucket.parts;
  return cut.bucket.like.kind == Kind::allreduce && combine.stage != Stage::partial &&
         combine.target < segment.packed.front().count * size_of(cut.moved.dtype) &&
         std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.result_remainder != nullptr; });
}

/// Adds elements [first, first + count) of a reduction up in float32.
void reduce_widened(const CutBucket& cut, const Combine& combine, const Share& range, int ranks,
                    const ScheduleMemory& memory, std::vector<float>& scratch) {
  const auto decode = kernels::decode_kernel(cut.moved.dtype);
  const auto bytes = range.first * size_of(cut.moved.dtype);
  scratch.resize((combine.sources.size() + 1) * range.count);
  std::vector<const void*> sources;
  auto* to = scratch.data() + range.count;
  for (const auto offset : combine.sources) {
    decode(to, memory.at(offset + bytes), range.count);
    sources.push_back(to);
    to += range.count;
  }
  const kernels::Reduction what{
      .dtype = DType::f32, .op = cut.moved.op, .postscale = cut.moved.postscale, .ranks = ranks};
  kernels::reduce_kernel(what.dtype, what.op)(what, scratch.data(), sources.data(),
                                              static_cast<int>(sources.size()), range.count);
}

void reduce_with_remainders(const CutBucket& cut, const Segment& segment, const Combine& combine,
                            int ranks, const ScheduleMemory& memory) {
  constexpr std::uint64_t kAtATime = 2048;  // Fits a core's cache with a dozen sources.
  const auto element = size_of(cut.moved.dtype);
  const auto encode = kernels::encode_kernel(cut.moved.dtype);
  const auto& packed = segment.packed.front();
  std::vector<float> scratch;
  for (std::uint64_t first = 0; first < combine.elements; first += kAtATime) {
    const Share range{first, std::min(kAtATime, combine.elements - first)};
    reduce_widened(cut, combine, range, ranks, memory, scratch);
    const auto at = combine.target + first * element;
    cut.lanes.for_pieces(
        packed.lane, packed.first + at / element, range.count, [&](const LanePiece& piece) {
          auto* const kept = cut.bucket.parts[piece.part].result_remainder;
          encode({.dtype = cut.moved.dtype}, memory.at(at + piece.in_chunk * element),
                 scratch.data() + piece.in_chunk, kept == nullptr ? nullptr : kept + piece.in,
                 piece.count);
        });
  }
}

}  // namespace

std::optional<SegmentPlace> place_in_result(const CutBucket& cut, const Segment& segment) {
  const auto& like = cut.bucket.like;
  if (like.kind != Kind::allreduce || like.wire != WireDType::none || segment.schedule.result != 0)
    return std::nullopt;
  const auto& stretch = segment.packed.front();
  std::optional<SegmentPlace> place;
  cut.lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    if (piece.count != stretch.count) return;
    const auto& part = cut.bucket.parts[piece.part];
    const auto element = size_of(like.dtype);
    place = {.in = static_cast<const std::byte*>(part.in) + piece.in * element,
             .out = static_cast<std::byte*>(part.out) + piece.out * element,
             .bytes = piece.count * element};
  });
  return place;
}

void reduce(const CutBucket& cut, const Segment& segment, const Combine& combine, const Mesh& mesh,
            const ScheduleMemory& memory) {
  // The algorithm, and with it which rank keeps a remainder, depends on what is fused. In rank
  // order the bits must not.
  if (cut.bucket.like.wire != WireDType::none && !mesh.rank_order &&
      keeps_result_remainders(cut, segment, combine)) {
    return reduce_with_remainders(cut, segment, combine, mesh.size, memory);
  }
  run(combine, cut.moved, mesh.size, memory);
}

void pack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch, std::byte* memory) {
  if (bucket.like.wire != WireDType::none) return pack_rounded(bucket, lanes, stretch, memory);
  const auto element = size_of(bucket.like.dtype);
  auto* to = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    const auto* from = static_cast<const std::byte*>(bucket.parts[piece.part].in);
    std::memcpy(to + piece.in_chunk * element, from + piece.in * element, piece.count * element);
  });
}

void unpack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch,
            const std::byte* memory) {
  if (bucket.like.wire != WireDType::none) return unpack_rounded(bucket, lanes, stretch, memory);
  const auto element = size_of(bucket.like.dtype);
  const auto* from = memory + stretch.offset;
  lanes.for_pieces(stretch.lane, stretch.first, stretch.count, [&](const LanePiece& piece) {
    auto* to = static_cast<std::byte*>(bucket.parts[piece.part].out);
    std::memcpy(to + piece.out * element, from + piece.in_chunk * element, piece.count * element);
  });
}

}  // namespace horo::runtime
