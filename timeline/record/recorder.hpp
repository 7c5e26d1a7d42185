// SPDX-License-Identifier: Apache-2.0
// This process's recorder, which the hot path calls. Each thread writes into a ring of its own, so
// that recording takes no lock, allocates nothing and never waits. A full ring overwrites its
// oldest records.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "timeline/record/packed.hpp"
#include "timeline/record/region.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::timeline {

struct RecorderOptions {
  UniqueFd memory;  ///< Memory that the agent made; none: this process makes its own.
  int index = 0;    ///< Index of this rank's region in `memory`.
  Bytes ring_memory{std::uint64_t{4} << 20U};
  Duration keep{};  ///< How much time before the last record is to be saved; zero: all of it.
  std::uint32_t name_slots = 8192;
  RankIdentity identity;
};

/// The facts about a tensor that the name table keeps.
struct TensorFacts {
  std::string_view name;
  std::uint8_t operation = 0;
  std::uint8_t dtype = 0;
  std::uint64_t bytes = 0;
  std::span<const std::int64_t> shape;
};

class Recorder {
 public:
  /// Starts recording. A second call in a process records into the same memory. Thread: one at a
  /// time. Fails: out_of_memory, io, invalid_argument.
  static Status open(RecorderOptions options);
  /// Stops recording. A thread that is writing a record finishes it. Thread: as open.
  static void close();

  /// Null while nothing is recorded. The recorder is never destroyed. Thread: any.
  static Recorder* current() { return current_.load(std::memory_order_acquire); }

  /// Whether a trace of this process shows when ranks of other hosts submit. Finding that out costs
  /// the leaders of all hosts some work, so they do it only while this is true. Thread: any.
  static bool wants_arrivals() { return wants_arrivals_.load(std::memory_order_relaxed); }

  static void want_arrivals(bool wanted) {
    wants_arrivals_.store(wanted, std::memory_order_relaxed);
  }

  /// Whether a trace shows this rank, and with it the times at which its devices worked. Measuring
  /// those costs events on the devices' streams, so it is done only while this is true. Thread:
  /// any.
  static bool wants_device_times() {
    const auto* const recorder = current();
    return recorder != nullptr &&
           recorder->header_.device_times.load(std::memory_order_relaxed) != 0;
  }

  /// The memory that holds this rank's region, and the region's index there. Constant.
  int memory() const { return memory_.value(); }

  int index() const { return index_; }

  std::uint64_t now() const { return ticks_now(by_processor_); }

  /// Thread: any. Blocks: no. Inline, so that the record is built directly in the ring.
  void put(const Record& record) {
    auto* const ring = own_ring();
    if (ring == nullptr) [[unlikely]]
      return;
    const auto at = ring->next++;
    Ring::keep_order();
    ring->record(at) = record;
    ring->shared->head.store(at + 1, std::memory_order_release);
  }

  // -- One function per record kind; Thread: any -------------------------------------------------

  /// `ticks`: a value of now().
  void submit(std::uint16_t set, TensorId id, std::uint64_t ticks) {
    auto* const ring = own_ring();
    if (ring == nullptr) [[unlikely]]
      return;
    const auto passed = ticks - ring->base;
    if (!SubmitWord::fits(id.value(), passed) || ring->next_word % SubmitWord::kBlock == 0)
        [[unlikely]]
      return submit_anew(*ring, set, id, ticks);
    ring->put_word(SubmitWord::of(set, id.value(), passed));
  }

  /// `member(i)` returns the number of the i-th tensor, in 32 bits.
  template <typename Member>
  void begin(Begin what, std::size_t count, Member member) {
    const auto ticks = now();
    what.tensors = static_cast<std::uint32_t>(count);
    put(encode(what, ticks));
    for (std::size_t i = 0; i < count;) {
      std::uint32_t step = 0;
      if (const auto row = length_of_row(i, count, member, step); row >= kLeastInRow) {
        put({.ticks = ticks,
             .kind = kMemberRow,
             .detail = static_cast<std::uint8_t>(row),
             .set = what.set,
             .id = member(i),
             .x = step == 1 ? 0U : 1U});
        i += row;
        continue;
      }
      const auto at = [&](std::size_t k) { return i + k < count ? member(i + k) : 0; };
      const auto held = std::min(kMembersPerRecord, count - i);
      put(encode_members({at(0), at(1), at(2), at(3), at(4)}, held, what.set, ticks));
      i += held;
    }
  }

  void copied(const Copies& copies) { put(encode(copies, now())); }

  void end(std::uint16_t set, std::uint64_t entry) {
    put({.ticks = now(), .kind = RecordKind::end, .set = set, .x = entry});
  }

  void wait(std::uint16_t set, TensorId id, std::uint64_t since) {
    put({.ticks = now(), .kind = RecordKind::wait, .set = set, .id = id.value(), .x = since});
  }

  void stall(std::size_t lines) {
    put({.ticks = now(),
         .kind = RecordKind::stall,
         .detail = static_cast<std::uint8_t>(std::min<std::size_t>(lines, 255))});
  }

  void mismatch(std::uint16_t set, TensorId id) {
    put({.ticks = now(), .kind = RecordKind::mismatch, .set = set, .id = id.value()});
  }

  /// Records that this rank is a member of a new set.
  void member(std::uint16_t set) { put({.ticks = now(), .kind = RecordKind::member, .set = set}); }

  /// Records that a rank of another host had submitted a tensor at `ticks`.
  void arrival(std::uint16_t set, TensorId id, Rank rank, std::uint64_t ticks) {
    put({.ticks = ticks,
         .kind = RecordKind::arrival,
         .set = set,
         .id = id.value(),
         .x = static_cast<std::uint64_t>(rank.value())});
  }

  /// Records that the rank uses other values for what begins from here on.
  void tuned(const RecordedTuning& before, const RecordedTuning& after) {
    const auto ticks = now();
    put(encode(before, ticks));
    put(encode(after, ticks));
  }

  void entered(const RecordedGeneration& generation) { put(encode(generation, now())); }

  void lost(Rank rank) {
    put({.ticks = now(), .kind = RecordKind::lost, .id = static_cast<std::uint32_t>(rank.value())});
  }

  void declare(std::uint16_t set, TensorId id, const TensorFacts& facts);

  /// The name that was declared; empty where another tensor has the row. Thread: any.
  std::string name_of(std::uint16_t set, std::uint32_t id) const;

 private:
  Recorder(UniqueFd memory, int index, std::byte* base, std::uint32_t ring_records,
           std::uint32_t name_slots);

  /// The writer's side of a ring, used by one thread at a time.
  struct alignas(64) Ring {
    std::atomic<std::uintptr_t> thread{0};  ///< Thread pointer of the owner; 0: free.
    RingHead* shared = nullptr;
    Record* records = nullptr;
    std::uint64_t next = 0;
    std::uint64_t* words = nullptr;
    std::uint64_t word_mask = 0;
    std::uint64_t next_word = 0;
    std::uint64_t base = kNoBase;  ///< Ticks that submission words count from.

    Record& record(std::uint64_t at) const { return records[at & word_mask / kWordsPerRecord]; }

    std::uint64_t& word(std::uint64_t at) const { return words[at & word_mask]; }

    /// Keeps an item from overwriting an old one before the count of the item before it can be
    /// seen: a reader takes it that one item at most is being written. Costs nothing on x86, where
    /// stores keep their order.
    static void keep_order() { std::atomic_thread_fence(std::memory_order_release); }

    void put_word(std::uint64_t what) {
      const auto at = next_word;
      keep_order();
      word(at) = what;
      next_word = at + 1;
      shared->submitted.store(at + 1, std::memory_order_release);
    }

    // No submission fits behind this value, so the first one writes a base.
    static constexpr std::uint64_t kNoBase = SubmitWord::kBase;
  };

  struct Lease;

  /// The index at which the search for a thread's ring starts. Thread pointers are unique among
  /// live threads. Reading one needs no call, unlike a thread_local variable in a shared library.
  static std::size_t first_seat(std::uintptr_t thread) {
    return (thread * 0x9e3779b97f4a7c15ULL >> 32U) % kRings;
  }

  /// The calling thread's ring. Null where all rings are taken; the record then counts as dropped.
  Ring* own_ring() {
    const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    auto& ring = rings_[first_seat(self)];
    if (ring.thread.load(std::memory_order_relaxed) == self) [[likely]]
      return &ring;
    return find_or_lease(self);
  }

  Ring* find_or_lease(std::uintptr_t self);
  /// Writes a base, then the submission.
  void submit_anew(Ring& ring, std::uint16_t set, TensorId id, std::uint64_t ticks);
  Ring* lease(std::uintptr_t self);
  static Result<Recorder*> make(RecorderOptions& options);
  /// The row of the name table that a tensor's number selects.
  NameSlot& name_slot(std::uint16_t set, std::uint32_t id) const HORO_REQUIRES(names_);

  static std::atomic<Recorder*> current_;
  static std::atomic<bool> wants_arrivals_;
  static std::array<Ring, kRings> rings_;  ///< No more threads than this record at a time.

  const UniqueFd memory_;
  const int index_;
  const bool by_processor_;
  std::byte* const base_;
  RegionHeader& header_;
  // Copies of the header's fields: other processes can write to the header.
  const std::uint32_t ring_records_;
  const std::uint32_t name_slots_;
  mutable Mutex names_;  ///< Held while a row of the name table is written or read.
};

/// Records a wait, from its construction to its destruction.
class Waiting {
 public:
  Waiting() = default;

  Waiting(std::uint16_t set, TensorId id) : recorder_(Recorder::current()), set_(set), id_(id) {
    if (recorder_ != nullptr) since_ = recorder_->now();
  }

  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  ~Waiting() {
    if (recorder_ != nullptr) recorder_->wait(set_, id_, since_);
  }

 private:
  Recorder* recorder_ = nullptr;
  std::uint16_t set_ = 0;
  TensorId id_;
  std::uint64_t since_ = 0;
};

}  // namespace horo::timeline
