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
constexpr std::uint64_t kHeapBlock = 1 << 20;
constexpr std::size_t kLongestName = 4096;
constexpr std::uint64_t kLeastName = 64;  // Room for one, to be used again by others.

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
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
  if (slot.name_offset < layout_.heap || slot.name_length > layout_.heap_bytes ||
      slot.name_offset > layout_.heap + layout_.heap_bytes - slot.name_length) {
    return "?";
  }
  return {reinterpret_cast<const char*>(base_ + slot.name_offset), slot.name_length};
}

Result<std::uint64_t> Board::take_heap(std::uint64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (bytes > layout_.heap_bytes || body_->heap_used > layout_.heap_bytes - bytes) {
    return fail(
        Errc::resource_exhausted,
        "the board's {} bytes for names and small tensors are used up; raise HORO_CACHE_CAPACITY",
        layout_.heap_bytes);
  }
  while (body_->heap_used + bytes > body_->heap_allocated) {
    const auto block = std::min(kHeapBlock, layout_.heap_bytes - body_->heap_allocated);
    HORO_TRY_STATUS(allocate(layout_.heap + body_->heap_allocated, block));
    body_->heap_allocated += block;
  }
  const auto offset = layout_.heap + body_->heap_used;
  body_->heap_used += bytes;
  return offset;
}

Status Board::provide_inline(TensorSlot& slot, const Signature& signature) {
  const auto bytes = signature.bytes();
  if (signature.kind == Kind::barrier || bytes > kInlineBytes) return {};
  if (bytes <= slot.inline_capacity.load(std::memory_order_relaxed)) return {};  // Another name's.
  // Never moved or grown: a peer may be writing its payload, and parts may differ in size.
  const auto least = first_extent_is_free(signature.kind) ? std::uint64_t{1024} : std::uint64_t{64};
  const auto capacity = std::max(least, std::bit_ceil(bytes));
  const auto offset = take_heap(2 * params_.local_size * capacity);
  if (!offset) return {};  // No room is no error: the tensor takes the rings.
  slot.inline_offset.store(*offset, std::memory_order_relaxed);
  slot.inline_capacity.store(static_cast<std::uint32_t>(capacity), std::memory_order_release);
  return {};
}

Status Board::provide_splits(TensorSlot& slot, const Signature& signature) {
  if (signature.kind != Kind::alltoall || slot.splits_offset.load(std::memory_order_relaxed) != 0)
    return {};
  const std::uint64_t n = params_.local_size;
  HORO_TRY(const auto offset, take_heap(2 * n * n * sizeof(std::uint64_t)));
  slot.splits_offset.store(offset, std::memory_order_release);
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
  if (count % kTensorBlock == 0) {
    const auto block = std::uint64_t{std::min(kTensorBlock, params_.capacity - count)};
    HORO_TRY_STATUS(
        allocate(layout_.tensors + count * sizeof(TensorSlot), block * sizeof(TensorSlot)));
    const auto row = params_.local_size * sizeof(RankTensor);
    HORO_TRY_STATUS(allocate(layout_.rank_tensors + count * row, block * row));
  }
  return TensorId{count};
}

Result<TensorId> Board::add_tensor(std::string_view name, std::uint64_t hash, const Signature& s) {
  HORO_TRY(const auto id, find_slot(name));
  auto& slot = tensor(id);
  if (name.size() > slot.name_room) {
    const auto room = std::bit_ceil(std::max<std::uint64_t>(name.size(), kLeastName));
    HORO_TRY(slot.name_offset, take_heap(room));
    slot.name_room = static_cast<std::uint32_t>(room);
  }
  std::memcpy(base_ + slot.name_offset, name.data(), name.size());
  slot.name_length = static_cast<std::uint32_t>(name.size());
  slot.name_hash = hash;
  slot.signature = s;
  slot.last_entry.store(body_->tail.load(std::memory_order_relaxed), std::memory_order_relaxed);
  HORO_TRY_STATUS(provide_inline(slot, s));
  // Only now: to make room moves what is in the table.
  const std::uint32_t mask = 2 * params_.capacity - 1;
  auto bucket = static_cast<std::uint32_t>(hash) & mask;
  while (buckets_[bucket] != 0) bucket = (bucket + 1) & mask;
  buckets_[bucket] = id.value() + 1;
  if (id.value() == body_->tensor_count.load(std::memory_order_relaxed))
    body_->tensor_count.store(id.value() + 1, std::memory_order_release);
  return id;
}

Result<TensorId> Board::find_or_add(std::string_view name, const Signature& signature) {
  const auto hash = hash_of(name);
  const std::uint32_t mask = 2 * params_.capacity - 1;
  auto bucket = static_cast<std::uint32_t>(hash) & mask;
  for (std::uint32_t probes = 0; probes <= mask; ++probes, bucket = (bucket + 1) & mask) {
    const auto value = buckets_[bucket];
    if (value == 0) return add_tensor(name, hash, signature);
    if (value > params_.capacity)
      return fail(Errc::protocol, "the board's name table holds id {}", value);
    const TensorId id{value - 1};
    if (tensor(id).name_hash == hash && tensor_name(id) == name) return id;
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
    RankTensor held{};
    move_to_group(held, in);
    auto id = find_or_add(name, signature);
    auto provided = id ? provide_splits(tensor(*id), signature) : Status{};
    if (id && provided) {
      auto& mine = rank_tensors_[id->index() * params_.local_size + static_cast<std::size_t>(me_)];
      mine.pins.fetch_add(1, std::memory_order_seq_cst);
      mine.signature = signature;
      move_to_group(mine, in);
      mine.declared.store(1, std::memory_order_relaxed);
    }
    move_to_group(held, {});
    if (!id) return Failure(std::move(id).error());
    HORO_TRY_STATUS(std::move(provided));
    return TensorHandle{*id, tensor(*id).incarnation.load(std::memory_order_relaxed)};
  }();
  unlock_directory();
  return result;
}

Result<std::optional<TensorId>> Board::define(std::string_view name, const Signature& signature) {
  HORO_TRY_STATUS(lock_directory());
  auto result = find_or_add(name, signature);
  if (result) {
    tensor(*result).held.store(1, std::memory_order_relaxed);
    tensor(*result).signature = signature;
  }
  unlock_directory();
  if (result) return std::optional(*result);
  // Entries that have been run make room for names too.
  if (result.error().code != Errc::resource_exhausted || in_flight() == 0)
    return Failure(std::move(result).error());
  body_->entries_wait.store(1, std::memory_order_seq_cst);
  return std::optional<TensorId>();
}

Result<GroupRef> Board::find_group(const GroupName& group) {
  if (group.name.empty() || group.size < 2) return GroupRef{};
  if (group.name.size() > kLongestName || group.size > params_.capacity) {
    return fail(Errc::invalid_argument, "a group of {} tensors with a name of {} bytes", group.size,
                group.name.size());
  }
  Signature nothing;
  nothing.kind = Kind::barrier;
  // The size is part of what it is called: another size is another group.
  HORO_TRY(const auto slot,
           find_or_add(fmt::format("{}{}/{}", kGroupPrefix, group.name, group.size), nothing));
  return GroupRef{.slot = slot.value() + 1, .size = group.size};
}

std::uint64_t* Board::splits(TensorId id, int member, std::uint64_t generation) {
  const std::uint64_t n = params_.local_size;
  const auto offset = tensor(id).splits_offset.load(std::memory_order_acquire);
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
  const auto offset =
      slot.inline_offset.load(std::memory_order_relaxed) +
      ((generation & 1U) * params_.local_size + static_cast<std::uint64_t>(member)) * capacity;
  if (offset < layout_.heap || offset + capacity > layout_.heap + layout_.heap_bytes)
    return nullptr;
  return base_ + offset;
}

}  // namespace horo::runtime
