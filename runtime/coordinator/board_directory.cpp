// SPDX-License-Identifier: Apache-2.0
// Names: one table for all ranks of the host, under a lock that a dying rank cannot keep, since its
// death poisons the board and every waiter looks at the poison.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint32_t kTensorBlock = 64;  // Slots backed with memory at a time.
constexpr std::uint64_t kHeapBlock = 128 << 10;
constexpr std::size_t kLongestName = 4096;

std::uint32_t hash_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<std::uint32_t>(hash >> 32U ^ hash);
}

}  // namespace

Status Board::lock_directory() {
  auto& lock = body_->directory_lock;
  std::uint32_t free = 0;
  if (lock.compare_exchange_strong(free, 1, std::memory_order_acquire)) return {};
  while (lock.exchange(2, std::memory_order_acquire) != 0) {
    if (poison_of(header()).cause != LossCause::none) {
      return fail(Errc::peer_lost, "a rank ended while names were being declared");
    }
    futex::wait(lock, 2, std::chrono::milliseconds(100));
  }
  return {};
}

void Board::unlock_directory() {
  if (body_->directory_lock.exchange(0, std::memory_order_release) == 2)
    futex::wake(body_->directory_lock, 1);
}

std::string_view Board::tensor_name(TensorId id) const {
  const auto& slot = tensor(id);
  const auto place = slot.name_place * kNameUnit;
  if (place + slot.name_length > layout_.heap_bytes) return "?";
  return {reinterpret_cast<const char*>(base_ + layout_.heap + place), slot.name_length};
}

Result<std::uint64_t> Board::take_heap(std::uint64_t bytes, std::uint64_t unit) {
  const auto begin = (body_->heap_used + unit - 1) / unit * unit;
  const auto end = begin + (bytes + unit - 1) / unit * unit;
  if (end > layout_.heap_bytes) {
    return fail(
        Errc::resource_exhausted,
        "the board's {} bytes for names and small tensors are used up; raise HORO_CACHE_CAPACITY",
        layout_.heap_bytes);
  }
  while (end > body_->heap_allocated) {
    const auto block = std::min(kHeapBlock, layout_.heap_bytes - body_->heap_allocated);
    HORO_TRY_STATUS(allocate(layout_.heap + body_->heap_allocated, block));
    body_->heap_allocated += block;
  }
  body_->heap_used = end;
  return begin;
}

Status Board::put_name(TensorSlot& slot, std::string_view name) {
  const auto units = [](std::size_t bytes) { return (bytes + kNameUnit - 1) / kNameUnit; };
  if (units(name.size()) > slot.name_room) {
    // Twice the room, so that names that grow and grow leave less behind than they take.
    const auto room = std::max(units(name.size()),
                               std::min<std::size_t>(2 * slot.name_room, units(kLongestName)));
    HORO_TRY(const auto place, take_heap(room * kNameUnit, kNameUnit));
    slot.name_place = static_cast<std::uint32_t>(place / kNameUnit);
    slot.name_room = static_cast<std::uint16_t>(room);
  }
  std::memcpy(base_ + layout_.heap + slot.name_place * kNameUnit, name.data(), name.size());
  slot.name_length = static_cast<std::uint16_t>(name.size());
  return {};
}

Status Board::provide_inline(TensorSlot& slot, const Signature& signature) {
  const auto bytes = signature.bytes();
  if (signature.kind == Kind::barrier || bytes > kInlineBytes) return {};
  if (bytes <= slot.inline_capacity.load(std::memory_order_relaxed)) return {};  // Another name's.
  // Never moved or grown: a peer may be writing its payload, and parts may differ in size.
  const auto least = first_extent_is_free(signature.kind) ? std::uint64_t{1024} : std::uint64_t{64};
  const auto capacity = std::max(least, std::bit_ceil(bytes));
  const auto place = take_heap(2 * params_.local_size * capacity);
  if (!place) return {};  // No room is no error: the tensor takes the rings.
  slot.inline_place.store(static_cast<std::uint32_t>(*place / kHeapUnit),
                          std::memory_order_relaxed);
  slot.inline_capacity.store(static_cast<std::uint16_t>(capacity), std::memory_order_release);
  return {};
}

Result<TensorAside*> Board::provide_aside(TensorSlot& slot) {
  if (slot.aside_place.load(std::memory_order_relaxed) == 0) {
    HORO_TRY(const auto place, take_heap(sizeof(TensorAside)));
    slot.aside_place.store(static_cast<std::uint32_t>(place / kHeapUnit),
                           std::memory_order_release);
  }
  return aside(TensorId{static_cast<std::uint32_t>(&slot - tensors_)});
}

TensorAside* Board::aside(TensorId id) const {
  const auto place = tensor(id).aside_place.load(std::memory_order_acquire) * kHeapUnit;
  if (place == 0 || place > layout_.heap_bytes - sizeof(TensorAside)) return nullptr;
  return reinterpret_cast<TensorAside*>(base_ + layout_.heap + place);
}

TensorAside* Board::group_aside(std::uint32_t group) const {
  return group == 0 || group > params_.capacity ? nullptr : aside(TensorId{group - 1});
}

GroupRef Board::group_of(TensorId id, int member) const {
  const auto slot = rank_tensor(id, member).group.load(std::memory_order_relaxed);
  const auto* const group = group_aside(slot);
  return group == nullptr ? GroupRef{} : GroupRef{.slot = slot, .size = group->group_size};
}

Status Board::provide_splits(TensorSlot& slot, const Signature& signature) {
  if (signature.kind != Kind::alltoall) return {};
  HORO_TRY(auto* const aside, provide_aside(slot));
  if (aside->splits_offset.load(std::memory_order_relaxed) != 0) return {};
  const std::uint64_t n = params_.local_size;
  HORO_TRY(const auto place, take_heap(2 * n * n * sizeof(std::uint64_t)));
  aside->splits_offset.store(layout_.heap + place, std::memory_order_release);
  return {};
}

Result<TensorId> Board::find_slot(std::string_view name) {
  const auto count = body_->tensor_count.load(std::memory_order_relaxed);
  if (count >= params_.capacity) {
    if (const auto freed = take_idle()) return *freed;
    return fail(Errc::resource_exhausted,
                "tensor '{}' is one more than the {} names that fit, all of them in use; wait for "
                "some, or raise HORO_CACHE_CAPACITY",
                name, params_.capacity);
  }
  if (count % kTensorBlock == 0) HORO_TRY_STATUS(back_tensors(count));
  return TensorId{count};
}

Status Board::back_tensors(std::uint32_t first) {
  const auto back = [this, first](std::uint64_t table, std::uint64_t size) {
    const auto block = std::min(kTensorBlock, params_.capacity - first);
    return allocate(table + first * size, block * size);
  };
  HORO_TRY_STATUS(back(layout_.tensors, sizeof(TensorSlot)));
  if (mask_words() > 1)
    HORO_TRY_STATUS(back(layout_.more_members, (kMaskWords - 1) * sizeof(std::uint64_t)));
  for (std::uint64_t m = 0; m < params_.local_size; ++m) {
    const auto rows = m * params_.capacity * sizeof(RankTensor);
    HORO_TRY_STATUS(back(layout_.rank_tensors + rows, sizeof(RankTensor)));
  }
  return {};
}

Result<TensorId> Board::add_tensor(std::string_view name, std::uint32_t hash, const Signature& s) {
  HORO_TRY(const auto id, find_slot(name));
  auto& slot = tensor(id);
  HORO_TRY_STATUS(put_name(slot, name));
  slot.name_hash = hash;
  HORO_TRY(const auto signature, intern(s, 0));
  slot.signature.store(signature, std::memory_order_relaxed);
  slot.last_entry.store(body_->tail.load(std::memory_order_relaxed), std::memory_order_relaxed);
  HORO_TRY_STATUS(provide_inline(slot, s));
  // Only now: to make room moves what is in the table.
  const std::uint32_t mask = 2 * params_.capacity - 1;
  auto bucket = hash & mask;
  while (buckets_[bucket] != 0) bucket = (bucket + 1) & mask;
  buckets_[bucket] = id.value() + 1;
  if (id.value() == body_->tensor_count.load(std::memory_order_relaxed))
    body_->tensor_count.store(id.value() + 1, std::memory_order_release);
  return id;
}

Result<std::optional<TensorId>> Board::look_up(std::string_view name, std::uint32_t hash) const {
  const std::uint32_t mask = 2 * params_.capacity - 1;
  auto bucket = hash & mask;
  for (std::uint32_t probes = 0; probes <= mask; ++probes, bucket = (bucket + 1) & mask) {
    const auto value = buckets_[bucket];
    if (value == 0) return std::optional<TensorId>();
    if (value > params_.capacity)
      return fail(Errc::protocol, "the board's name table holds id {}", value);
    const TensorId id{value - 1};
    if (tensor(id).name_hash == hash && tensor_name(id) == name) return std::optional(id);
  }
  return fail(Errc::protocol, "the board's name table is full");
}

std::optional<TensorId> Board::find(std::string_view name) const {
  const auto hash = hash_of(name);
  const auto count = body_->tensor_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, params_.capacity); ++i) {
    const TensorId id{i};
    if (tensor(id).name_hash == hash && tensor_name(id) == name) return id;
  }
  return std::nullopt;
}

Result<TensorId> Board::find_or_add(std::string_view name, const Signature& signature) {
  const auto hash = hash_of(name);
  HORO_TRY(const auto known, look_up(name, hash));
  if (known) return *known;
  return add_tensor(name, hash, signature);
}

Result<std::optional<TensorHandle>> Board::handle_of(std::string_view name) {
  HORO_TRY_STATUS(lock_directory());
  const auto known = look_up(name, hash_of(name));
  std::optional<TensorHandle> found;
  if (known && *known)
    found = {**known, tensor(**known).incarnation.load(std::memory_order_relaxed)};
  unlock_directory();
  if (!known) return Failure(Error(known.error()));
  return found;
}

Result<TensorHandle> Board::declare(std::string_view name, const Signature& signature,
                                    const GroupName& group) {
  if (name.empty() || name.size() > kLongestName || name.front() == kGroupPrefix.front()) {
    return fail(Errc::invalid_argument,
                "a tensor name of {} bytes; allowed are 1 to {}, not beginning with \\x01",
                name.size(), kLongestName);
  }
  HORO_TRY_STATUS(lock_directory());
  auto result = [&]() -> Result<TensorHandle> {
    HORO_TRY(const auto in, find_group(group));
    // Held while a slot for the tensor is looked for.
    std::atomic<std::uint32_t> held{0};
    move_to_group(held, in);
    auto declared = declare_in(name, signature, in);
    move_to_group(held, 0);
    return declared;
  }();
  unlock_directory();
  return result;
}

Result<TensorHandle> Board::declare_in(std::string_view name, const Signature& signature,
                                       std::uint32_t group) {
  HORO_TRY(const auto id, find_or_add(name, signature));
  auto& slot = tensor(id);
  HORO_TRY_STATUS(provide_splits(slot, signature));
  HORO_TRY(const auto number, intern(signature, slot.signature.load(std::memory_order_relaxed)));
  auto& mine = this->mine(id);
  mine.pins.fetch_add(1, std::memory_order_seq_cst);
  mine.signature.store(number, std::memory_order_relaxed);
  move_to_group(mine.group, group);
  return TensorHandle{id, slot.incarnation.load(std::memory_order_relaxed)};
}

Result<std::optional<TensorId>> Board::define(std::string_view name, const Signature& signature) {
  HORO_TRY_STATUS(lock_directory());
  auto result = [&]() -> Result<TensorId> {
    HORO_TRY(const auto id, find_or_add(name, signature));
    auto& slot = tensor(id);
    HORO_TRY(const auto number, intern(signature, slot.signature.load(std::memory_order_relaxed)));
    slot.held.store(1, std::memory_order_relaxed);
    slot.signature.store(number, std::memory_order_release);
    return id;
  }();
  unlock_directory();
  if (result) return std::optional(*result);
  // Entries that have been run make room for names too.
  if (result.error().code != Errc::resource_exhausted || in_flight() == 0)
    return Failure(std::move(result).error());
  body_->entries_wait.store(1, std::memory_order_seq_cst);
  return std::optional<TensorId>();
}

Result<std::uint32_t> Board::find_group(const GroupName& group) {
  if (group.name.empty() || group.size < 2) return 0U;
  if (group.name.size() > kLongestName || group.size > params_.capacity) {
    return fail(Errc::invalid_argument, "a group of {} tensors with a name of {} bytes", group.size,
                group.name.size());
  }
  Signature nothing;
  nothing.kind = Kind::barrier;
  // The size is part of what it is called: another size is another group.
  HORO_TRY(const auto slot,
           find_or_add(fmt::format("{}{}/{}", kGroupPrefix, group.name, group.size), nothing));
  HORO_TRY(auto* const aside, provide_aside(tensor(slot)));
  if (aside == nullptr)
    return fail(Errc::protocol, "the board's group '{}' is nowhere", group.name);
  aside->group_size = group.size;
  return slot.value() + 1;
}

std::uint64_t* Board::splits(TensorId id, int member, std::uint64_t generation) {
  const std::uint64_t n = params_.local_size;
  const auto* const aside = this->aside(id);
  if (aside == nullptr) return nullptr;
  const auto offset = aside->splits_offset.load(std::memory_order_acquire);
  const auto bytes = 2 * n * n * sizeof(std::uint64_t);
  if (offset < layout_.heap || offset > layout_.heap + layout_.heap_bytes - bytes) return nullptr;
  return reinterpret_cast<std::uint64_t*>(base_ + offset) +
         ((generation & 1U) * n + static_cast<std::uint64_t>(member)) * n;
}

std::byte* Board::inline_slot(TensorId id, int member, std::uint64_t generation,
                              std::uint64_t bytes) {
  const auto& slot = tensor(id);
  const std::uint64_t capacity = slot.inline_capacity.load(std::memory_order_acquire);
  if (bytes > capacity) return nullptr;
  const auto place =
      slot.inline_place.load(std::memory_order_relaxed) * kHeapUnit +
      ((generation & 1U) * params_.local_size + static_cast<std::uint64_t>(member)) * capacity;
  if (place + capacity > layout_.heap_bytes) return nullptr;
  return base_ + layout_.heap + place;
}

}  // namespace horo::runtime
