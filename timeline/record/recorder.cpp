// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/recorder.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "timeline/record/name_hash.hpp"

namespace horo::timeline {

/// Gives the ring back when its thread ends.
struct Recorder::Lease {
  Ring* ring = nullptr;
  const pid_t process = getpid();

  Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
};

namespace {

constexpr std::string_view kLeftOut = "...";
constexpr std::size_t kHeadOfLongName = 80;

thread_local constinit bool ended = false;

void put_name(NameSlot& slot, std::string_view name) {
  auto* at = slot.text.data();
  if (name.size() <= NameSlot::kMostName) {
    slot.name_bytes = static_cast<std::uint8_t>(name.copy(at, name.size()));
    return;
  }
  const auto tail = NameSlot::kMostName - kHeadOfLongName - kLeftOut.size();
  name.copy(at, kHeadOfLongName);
  kLeftOut.copy(at + kHeadOfLongName, kLeftOut.size());
  name.substr(name.size() - tail).copy(at + kHeadOfLongName + kLeftOut.size(), tail);
  slot.name_bytes = NameSlot::kMostName;
}

void put_shape(NameSlot& slot, std::span<const std::int64_t> shape) {
  constexpr auto kMost = NameSlot::kTextBytes - NameSlot::kMostName;
  const auto text = fmt::format("[{}]", fmt::join(shape, ", "));
  const auto shown = text.size() <= kMost ? text : std::string("[...]");
  slot.shape_bytes =
      static_cast<std::uint8_t>(shown.copy(slot.text.data() + NameSlot::kMostName, kMost));
}

}  // namespace

std::atomic<Recorder*> Recorder::current_{nullptr};
std::atomic<bool> Recorder::wants_arrivals_{false};
constinit std::array<Recorder::Ring, kRings> Recorder::rings_{};

Recorder::Lease::~Lease() {
  ended = true;
  if (ring == nullptr) return;
  // A forked child has a copy of this thread but not the ring's memory.
  auto* const shared = getpid() == process ? ring->shared : nullptr;
  ring->thread.store(0, std::memory_order_release);
  if (shared != nullptr) shared->owner.store(0, std::memory_order_release);
}

Recorder::Recorder(UniqueFd memory, int index, std::byte* base, std::uint32_t ring_records,
                   std::uint32_t name_slots)
    : memory_(std::move(memory)),
      index_(index),
      by_processor_(counts_by_processor()),
      base_(base),
      header_(*reinterpret_cast<RegionHeader*>(base)),
      ring_records_(ring_records),
      name_slots_(name_slots) {}

Result<Recorder*> Recorder::make(RecorderOptions& options) {
  if (!options.memory) {
    options.index = 0;
    HORO_TRY(options.memory, make_regions(1));
  }
  const auto records = std::bit_floor(std::clamp<std::uint64_t>(
      options.ring_memory.value() / kRings / kRingBytesPerRecord, 64, kMostRingRecords));
  const auto ring_records = static_cast<std::uint32_t>(records);
  const auto slots = std::clamp<std::uint32_t>(options.name_slots, 16, kMostNameSlots);
  const auto bytes = region_bytes(ring_records, slots);
  if (bytes > kRegionStride)
    return fail(Errc::invalid_argument, "{} bytes for the timeline are too many", bytes);
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, options.memory.value(),
           static_cast<off_t>(kRegionStride) * options.index);
  if (base == MAP_FAILED) return fail_errno(errno, "mapping the timeline's memory");
  madvise(base, bytes, MADV_DONTFORK);
  // The recorder is never destroyed, because threads may record until the process ends.
  return new Recorder(std::move(options.memory), options.index, static_cast<std::byte*>(base),
                      ring_records, slots);
}

Status Recorder::open(RecorderOptions options) {
  static Recorder* only = nullptr;
  if (only == nullptr) {
    HORO_TRY(only, make(options));
    only->header_.version = kRegionVersion;
    only->header_.ring_records = only->ring_records_;
    only->header_.name_slots = only->name_slots_;
    only->header_.anchor = take_anchor();
  }
  only->header_.identity = options.identity;
  only->header_.keep_ms = static_cast<std::uint32_t>(
      std::chrono::ceil<std::chrono::milliseconds>(options.keep).count());
  // The magic is written last: a reader that finds it trusts the other fields.
  std::atomic_ref(only->header_.magic).store(kRegionMagic, std::memory_order_release);
  current_.store(only, std::memory_order_release);
  return {};
}

void Recorder::close() {
  current_.store(nullptr, std::memory_order_release);
}

Recorder::Ring* Recorder::find_or_lease(std::uintptr_t self) {
  for (auto& ring : rings_) {
    if (ring.thread.load(std::memory_order_relaxed) == self) return &ring;
  }
  auto* const ring = lease(self);
  if (ring == nullptr) header_.dropped.fetch_add(1, std::memory_order_relaxed);
  return ring;
}

Recorder::Ring* Recorder::lease(std::uintptr_t self) {
  if (ended) return nullptr;  // This thread's destructors are running.
  RingHead* shared = nullptr;
  std::size_t number = 0;
  for (; number < kRings && shared == nullptr; ++number) {
    std::uint32_t free = 0;
    auto& one = header_.rings.at(number);
    if (one.owner.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) shared = &one;
  }
  if (shared == nullptr) return nullptr;
  for (std::size_t i = 0; i < kRings; ++i) {
    auto& ring = rings_.at((first_seat(self) + i) % kRings);
    std::uintptr_t unowned = 0;
    if (!ring.thread.compare_exchange_strong(unowned, self, std::memory_order_acq_rel)) continue;
    auto* const records = base_ + ring_offset(ring_records_, name_slots_, number - 1);
    auto* const words = base_ + words_offset(ring_records_, name_slots_, number - 1);
    ring.shared = shared;
    ring.records = reinterpret_cast<Record*>(records);
    ring.words = reinterpret_cast<std::uint64_t*>(words);
    ring.word_mask = ring_records_ * kWordsPerRecord - 1;
    ring.next = shared->head.load(std::memory_order_acquire);
    ring.next_word = shared->submitted.load(std::memory_order_acquire);
    ring.base = Ring::kNoBase;
    static thread_local Lease mine;
    mine.ring = &ring;
    return &ring;
  }
  shared->owner.store(0, std::memory_order_release);
  return nullptr;
}

void Recorder::submit_anew(Ring& ring, std::uint16_t set, TensorId id, std::uint64_t ticks) {
  if (id.value() >= SubmitWord::kMostId)
    return put({.ticks = ticks, .kind = RecordKind::submit, .set = set, .id = id.value()});
  // The next words were last touched one ring ago. Prefetching them here keeps the submissions of
  // this block from waiting for memory.
  constexpr std::uint64_t kLine = 64 / sizeof(std::uint64_t);
  for (std::uint64_t i = 1; i <= SubmitWord::kBlock; i += kLine)
    __builtin_prefetch(&ring.word(ring.next_word + i + kLine), 1);
  ring.base = ticks & ~SubmitWord::kBase;
  do {
    ring.put_word(ring.base | SubmitWord::kBase);
  } while (ring.next_word % SubmitWord::kBlock == 0);
  ring.put_word(SubmitWord::of(set, id.value(), 0));
}

NameSlot& Recorder::name_slot(std::uint16_t set, std::uint32_t id) const {
  return *reinterpret_cast<NameSlot*>(base_ + name_offset(name_slot_of(set, id, name_slots_)));
}

void Recorder::declare(std::uint16_t set, TensorId id, const TensorFacts& facts) {
  const auto ticks = now();
  std::uint64_t hash = 0;
  {
    const MutexLock lock(names_);
    auto& slot = name_slot(set, id.value());
    const std::atomic_ref sequence(slot.sequence);
    const auto before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    slot.id = id.value();
    slot.set = set;
    slot.operation = facts.operation;
    slot.dtype = facts.dtype;
    slot.bytes = facts.bytes;
    slot.since = ticks;
    put_name(slot, facts.name);
    put_shape(slot, facts.shape);
    hash = hash_of_name(slot.name());
    sequence.store(before + 2, std::memory_order_release);
  }
  put({.ticks = ticks,
       .kind = RecordKind::declare,
       .detail = facts.operation,
       .set = set,
       .id = id.value(),
       .x = facts.bytes,
       .y = hash});
}

std::string Recorder::name_of(std::uint16_t set, std::uint32_t id) const {
  const MutexLock lock(names_);
  const auto& slot = name_slot(set, id);
  return slot.set == set && slot.id == id ? std::string(slot.name()) : std::string();
}

}  // namespace horo::timeline
