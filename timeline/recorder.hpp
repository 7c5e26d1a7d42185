// SPDX-License-Identifier: Apache-2.0
// This process's recorder: what the hot path calls. Each thread writes into a ring of its own, so
// nothing is locked, allocated or waited for; a full ring begins anew over its oldest records.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "timeline/packed.hpp"
#include "timeline/region.hpp"
#include "timeline/ticks.hpp"

namespace horo::timeline {

struct RecorderOptions {
  UniqueFd memory;  ///< Of the agent; none: this process makes its own.
  int index = 0;    ///< Of this rank's region there.
  Bytes ring_memory{std::uint64_t{4} << 20U};
  Duration keep{};  ///< Before the last record, for those who save; zero: all.
  std::uint32_t name_slots = 8192;
  Identity identity;
};

/// What the name table keeps of a tensor.
struct TensorFacts {
  std::string_view name;
  std::uint8_t operation = 0;
  std::uint8_t dtype = 0;
  std::uint64_t bytes = 0;
  std::span<const std::int64_t> shape;
};

class Recorder {
 public:
  /// Begins to record; a second time in a process, into the same memory. Thread: one at a time.
  /// Fails: out_of_memory, io, invalid_argument.
  static Status open(RecorderOptions options);
  /// Stops; threads that are just recording finish their record. Thread: as open.
  static void close();

  /// Null while nothing is recorded. It is never destroyed. Thread: any.
  static Recorder* current() { return current_.load(std::memory_order_acquire); }

  /// The memory with the region, and which of its regions it is. Constant.
  int memory() const { return memory_.value(); }

  int index() const { return index_; }

  std::uint64_t now() const { return ticks_now(by_processor_); }

  /// Thread: any. Blocks: no. Inline, so that a record is made where it goes.
  void put(const Record& record) {
    auto* const ring = own_ring();
    if (ring == nullptr) [[unlikely]]
      return;
    const auto at = ring->next++;
    ring->record(at) = record;
    ring->shared->head.store(at + 1, std::memory_order_release);
  }

  // -- One line each in the runtime; Thread: any -------------------------------------------------

  /// `ticks`: of now().
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

  /// `member(i)`: the i-th tensor, 32 bits.
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

  /// This rank is in a set that is new.
  void member(std::uint16_t set) { put({.ticks = now(), .kind = RecordKind::member, .set = set}); }

  void lost(Rank rank) {
    put({.ticks = now(), .kind = RecordKind::lost, .id = static_cast<std::uint32_t>(rank.value())});
  }

  void declare(std::uint16_t set, TensorId id, const TensorFacts& facts);

  /// As declared; empty: another tensor has its place. Thread: any.
  std::string name_of(std::uint16_t set, std::uint32_t id) const;

 private:
  Recorder(UniqueFd memory, int index, std::byte* base, std::uint32_t ring_records,
           std::uint32_t name_slots);

  /// A thread's own end of a ring.
  struct alignas(64) Ring {
    std::atomic<std::uintptr_t> thread{0};  ///< Its thread pointer; 0: nobody's.
    RingHead* shared = nullptr;
    Record* records = nullptr;
    std::uint64_t next = 0;
    std::uint64_t* words = nullptr;
    std::uint64_t word_mask = 0;
    std::uint64_t next_word = 0;
    std::uint64_t base = kNoBase;  ///< Ticks.

    Record& record(std::uint64_t at) const { return records[at & word_mask / kWordsPerRecord]; }

    std::uint64_t& word(std::uint64_t at) const { return words[at & word_mask]; }

    void put_word(std::uint64_t what) {
      const auto at = next_word;
      word(at) = what;
      next_word = at + 1;
      shared->submitted.store(at + 1, std::memory_order_release);
    }

    static constexpr std::uint64_t kNoBase = SubmitWord::kBase;  // Nothing fits behind it.
  };

  struct Lease;

  /// Where a thread's ring is looked for first. Thread pointers are unique while threads live, and
  /// to read one is no call, which to find a variable of a thread is in a library.
  static std::size_t first_seat(std::uintptr_t thread) {
    return (thread * 0x9e3779b97f4a7c15ULL >> 32U) % kRings;
  }

  /// Null: there is none, and the record is counted as dropped.
  Ring* own_ring() {
    const auto self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    auto& ring = rings_[first_seat(self)];
    if (ring.thread.load(std::memory_order_relaxed) == self) [[likely]]
      return &ring;
    return find_or_lease(self);
  }

  Ring* find_or_lease(std::uintptr_t self);
  /// With a base before it.
  void submit_anew(Ring& ring, std::uint16_t set, TensorId id, std::uint64_t ticks);
  Ring* lease(std::uintptr_t self);
  static Result<Recorder*> make(RecorderOptions& options);

  static std::atomic<Recorder*> current_;
  static std::array<Ring, kRings> rings_;  ///< At most as many threads have one.

  const UniqueFd memory_;
  const int index_;
  const bool by_processor_;
  std::byte* const base_;
  RegionHeader& header_;
  const std::uint32_t ring_records_;  ///< As name_slots_: not what others may write to the header.
  const std::uint32_t name_slots_;
  mutable std::mutex names_;  ///< One declares at a time.
};

/// Says how long a caller was inside a wait, at its end.
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
