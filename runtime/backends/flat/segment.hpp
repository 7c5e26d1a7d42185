// SPDX-License-Identifier: Apache-2.0
// One stretch of a bucket as a collective of its own: where tensors are packed to, which messages
// move, and where results are unpacked from. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/schedule_memory.hpp"
#include "runtime/bucket/lanes.hpp"

namespace horo::runtime {

/// Elements [first, first + count) of a lane, and their place in the staging memory.
struct Stretch {
  std::size_t lane = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  ///< Bytes.
};

struct Segment {
  Schedule schedule;
  std::vector<Stretch> packed;    ///< From the tensors.
  std::vector<Stretch> unpacked;  ///< To the tensors.
};

/// Bytes of a segment between `size` ranks.
std::uint64_t segment_bytes(int size);

/// Elements of every lane that go into one segment of about `bytes`.
std::uint64_t segment_unit(const Bucket& bucket, int size, std::uint64_t bytes);

/// A bucket on its way in segments.
struct CutBucket {
  Bucket bucket;
  Signature moved;  ///< The staging memory's elements have this one.
  Lanes lanes;
  std::uint64_t unit = 0;  ///< Elements of each lane in a segment.
  std::uint64_t segments = 0;
  std::uint64_t left = 0;  ///< Segments not done.
};

/// Cuts it into segments of about `bytes`, for the backend of that name. Fails: unsupported.
Status cut_bucket(Bucket bucket, const Mesh& mesh, std::uint64_t bytes, std::string_view backend,
                  CutBucket& cut);

/// The `index`-th segment of a bucket that is cut every `unit` elements.
Segment make_segment(const Bucket& bucket, const Lanes& lanes, const Mesh& mesh, std::uint64_t unit,
                     std::uint64_t index);

/// Runs one reduction of a segment's schedule. Where the bucket's elements are rounded for the wire
/// and this rank alone computes these elements of an all-reduce, the result is rounded with the
/// parts' remainders.
void reduce(const CutBucket& cut, const Segment& segment, const Combine& combine, const Mesh& mesh,
            const ScheduleMemory& memory);

/// The part of one tensor that a segment is.
struct SegmentPlace {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t bytes = 0;
};

/// Where a segment's schedule can run in the memory of the result instead of staging memory, once
/// the input is there: it is an all-reduce of one tensor, whose elements travel as they are, and
/// leaves the result where the input was.
std::optional<SegmentPlace> place_in_result(const CutBucket& cut, const Segment& segment);

/// Copies between the tensors of a bucket and staging memory. Where the bucket says so, packing
/// rounds to the type of the wire, with the inputs' scaling and the parts' remainders.
void pack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch, std::byte* memory);
void unpack(const Bucket& bucket, const Lanes& lanes, const Stretch& stretch,
            const std::byte* memory);

}  // namespace horo::runtime
