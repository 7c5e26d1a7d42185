// SPDX-License-Identifier: Apache-2.0
// This process's recorder: what the hot path calls. Each thread writes into a ring of its own, so
// nothing is locked, allocated or waited for; a full ring begins anew over its oldest records.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "timeline/region.hpp"
#include "timeline/ticks.hpp"

namespace horo::timeline {

struct RecorderOptions {
  UniqueFd memory;  ///< Of the agent; none: this process makes its own.
  int index = 0;    ///< Of this rank's region there.
  Bytes ring_memory{std::uint64_t{4} << 20U};
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

  /// Thread: any. Blocks: no.
  void put(const Record& record);

  // -- One line each in the runtime; Thread: any -------------------------------------------------

  void submit(SetId set, TensorId id) {
    put({.ticks = now(), .kind = RecordKind::submit, .set = narrow(set), .id = id.value()});
  }

  /// `member(i)`: the i-th tensor.
  template <typename Member>
  void begin(Begin what, std::size_t count, Member member) {
    const auto ticks = now();
    what.tensors = static_cast<std::uint32_t>(count);
    put(encode(what, ticks));
    for (std::size_t i = 0; i < count; i += kMembersPerRecord) {
      const auto at = [&](std::size_t k) -> std::uint64_t {
        return i + k < count ? std::uint64_t{member(i + k)} : 0;
      };
      put({.ticks = ticks,
           .kind = RecordKind::members,
           .detail = static_cast<std::uint8_t>(std::min(kMembersPerRecord, count - i)),
           .set = what.set,
           .id = static_cast<std::uint32_t>(at(0)),
           .x = at(1) | at(2) << 32U,
           .y = at(3) | at(4) << 32U});
    }
  }

  void copied(const Copies& copies) { put(encode(copies, now())); }

  void end(std::uint16_t set, std::uint64_t entry) {
    put({.ticks = now(), .kind = RecordKind::end, .set = set, .x = entry});
  }

  void wait(SetId set, TensorId id, std::uint64_t since) {
    put({.ticks = now(),
         .kind = RecordKind::wait,
         .set = narrow(set),
         .id = id.value(),
         .x = since});
  }

  void stall(std::size_t lines) {
    put({.ticks = now(),
         .kind = RecordKind::stall,
         .detail = static_cast<std::uint8_t>(std::min<std::size_t>(lines, 255))});
  }

  void mismatch(std::uint16_t set, TensorId id) {
    put({.ticks = now(), .kind = RecordKind::mismatch, .set = set, .id = id.value()});
  }

  void lost(Rank rank) {
    put({.ticks = now(), .kind = RecordKind::lost, .id = static_cast<std::uint32_t>(rank.value())});
  }

  void declare(std::uint16_t set, TensorId id, const TensorFacts& facts);

  /// As declared; empty: another tensor has its place. Thread: any.
  std::string name_of(std::uint16_t set, std::uint32_t id) const;

 private:
  Recorder(UniqueFd memory, int index, std::byte* base, std::uint32_t ring_records,
           std::uint32_t name_slots);

  struct Ring;
  struct Lease;

  static std::uint16_t narrow(SetId set) { return static_cast<std::uint16_t>(set.value()); }

  Ring* lease();
  static Result<Recorder*> make(RecorderOptions& options);

  static std::atomic<Recorder*> current_;

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

  Waiting(SetId set, TensorId id) : recorder_(Recorder::current()), set_(set), id_(id) {
    if (recorder_ != nullptr) since_ = recorder_->now();
  }

  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  ~Waiting() {
    if (recorder_ != nullptr) recorder_->wait(set_, id_, since_);
  }

 private:
  Recorder* recorder_ = nullptr;
  SetId set_;
  TensorId id_;
  std::uint64_t since_ = 0;
};

}  // namespace horo::timeline
