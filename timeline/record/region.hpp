// SPDX-License-Identifier: Apache-2.0
// The layout of one rank's records in shared memory: header, name table, rings. The rank writes.
// Other processes read with pread and validate everything they read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "timeline/record/packed.hpp"
#include "timeline/record/record.hpp"

namespace horo::timeline {

inline constexpr std::uint64_t kRegionMagic = 0x4e4f49474552'4c54ULL;  // "TLREGION", nearly
inline constexpr std::uint32_t kRegionVersion = 2;
inline constexpr std::size_t kRegionStride = std::size_t{64} << 20U;
inline constexpr std::size_t kRegionHeaderBytes = 4096;
inline constexpr int kMostRegions = 1024;  ///< Readers look at no more regions of one memory.
inline constexpr std::size_t kRings = 8;
inline constexpr std::uint32_t kMostRingRecords = 1U << 17U;
/// Each ring has so many words for submissions, behind its records, for each record it has.
inline constexpr std::uint64_t kWordsPerRecord = 2;
inline constexpr std::size_t kRingBytesPerRecord =
    sizeof(Record) + kWordsPerRecord * sizeof(std::uint64_t);
inline constexpr std::uint32_t kMostNameSlots = 1U << 16U;

/// Which rank of which job wrote the records, and where it ran.
struct RankIdentity {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;
  std::int32_t pid = 0;
  std::array<char, 64> host{};  ///< Ends with NUL where the name is shorter.
  std::array<char, 64> job{};

  void set_host(std::string_view text);
  void set_job(std::string_view text);
  std::string host_text() const;
  std::string job_text() const;
};

struct alignas(128) RingHead {
  std::atomic<std::uint64_t> head;       ///< Number of records written since the beginning.
  std::atomic<std::uint64_t> submitted;  ///< Number of submission words written, likewise.
  std::atomic<std::uint32_t> owner;      ///< 1 while a thread writes to the ring.
};

struct RegionHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t ring_records;  ///< A power of two.
  std::uint32_t name_slots;
  std::uint32_t keep_ms;  ///< How much time before the last record is saved; 0: all of it.
  RankIdentity identity;
  Anchor anchor;
  std::atomic<std::uint64_t> dropped;
  std::array<RingHead, kRings> rings;
  std::atomic<std::uint32_t>
      device_times;  ///< 1 while a trace shows the rank; any process sets it.
};

static_assert(sizeof(RegionHeader) <= kRegionHeaderBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::size_t region_bytes(std::uint32_t ring_records, std::uint32_t name_slots);
std::size_t name_offset(std::uint32_t slot);
std::size_t ring_offset(std::uint32_t ring_records, std::uint32_t name_slots, std::size_t ring);
std::size_t words_offset(std::uint32_t ring_records, std::uint32_t name_slots, std::size_t ring);
/// The row of the name table for a tensor. Several tensors may share a row; the last one has it.
std::uint32_t name_slot_of(std::uint16_t set, std::uint32_t id, std::uint32_t slots);

/// Makes shared memory for `ranks` regions; pages are allocated when they are first written.
/// Fails: out_of_memory, unavailable (limits), io.
Result<UniqueFd> make_regions(int ranks);

/// How many regions the memory has room for; 0: it is no memory from make_regions().
int count_regions(int fd);
/// Whether `fd` is memory from make_regions() that has a region `index`.
bool is_memory(int fd, int index);

/// Tells the rank of a region whether a trace shows it. A failure is no harm: the trace lacks the
/// times of its devices.
void ask_for_device_times(int fd, int index, bool wanted);

/// The contents of a region's header.
struct RegionAbout {
  RankIdentity identity;
  Anchor anchor;
  std::uint64_t dropped = 0;
  std::uint32_t ring_records = 0;
  std::uint32_t name_slots = 0;
  Duration keep{};  ///< How much time before the last record is saved; zero: all of it.
};

/// Reads one rank's region from another process. Thread: owner. `fd` outlives it.
class RegionReader {
 public:
  /// Fails: not_found (nothing was recorded there), version_mismatch, protocol, io.
  static Result<RegionReader> open(int fd, int index);

  const RegionAbout& about() const { return about_; }

  int index() const { return static_cast<int>(base_ / kRegionStride); }

  /// Reads again which rank writes: a process that begins anew may become another rank.
  void read_identity();

  /// Appends the records that were written since the last call: for each ring its submissions, then
  /// its other records, each in their order. Members stay behind their begin record. Returns how
  /// many records were overwritten before they could be read.
  Result<std::uint64_t> drain(std::vector<Record>& to);

  /// The ticks from which on the last drain missed nothing.
  std::uint64_t complete_from() const { return complete_from_; }

  /// The row of this tensor; none where it was never declared, or another tensor has the row.
  std::optional<NameSlot> name_of(std::uint16_t set, std::uint32_t id) const;
  /// All rows in use.
  std::vector<NameSlot> names() const;
  std::uint64_t dropped() const;

 private:
  RegionReader(int fd, std::uint64_t base, const RegionAbout& about)
      : fd_(fd), base_(base), about_(about) {}

  bool read_at(void* to, std::size_t bytes, std::uint64_t offset) const;
  /// Reads the new items of one of a ring's two parts: `head_at` is the offset of the part's
  /// counter, `begins_at` that of its items, `capacity` how many items it holds. Appends to `to`,
  /// and returns how many items were overwritten.
  template <typename T>
  Result<std::uint64_t> read_new(std::size_t head_at, std::size_t begins_at, std::uint64_t capacity,
                                 std::uint64_t& seen, std::vector<T>& to) const;
  Result<std::uint64_t> drain_ring(std::size_t ring, std::vector<Record>& to);

  int fd_;
  std::uint64_t base_;
  RegionAbout about_;
  std::array<std::uint64_t, kRings> read_{};
  std::array<std::uint64_t, kRings> words_read_{};
  std::array<SubmitReader, kRings> submissions_{};
  std::uint64_t complete_from_ = 0;
};

}  // namespace horo::timeline
