// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/directory.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace horo::runtime {

namespace {

constexpr std::uint32_t kTensorBlock = 64;  // Slots backed with memory at a time.

}  // namespace

/// Holds the directory's lock while it lives.
class Directory::Lock {
 public:
  /// Fails: peer_lost.
  static Result<Lock> take(const SetRegion& region) {
    auto& word = region.body().directory_lock;
    std::uint32_t free = kFree;
    if (word.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) return Lock(word);
    while (word.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      if (poison_of(region.header()).cause != LossCause::none) {
        return fail(Errc::peer_lost, "a rank ended while names were being declared");
      }
      futex::wait(word, kAwaited, std::chrono::milliseconds(100));
    }
    return Lock(word);
  }

  Lock(Lock&& other) noexcept : word_(std::exchange(other.word_, nullptr)) {}

  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  Lock& operator=(Lock&&) = delete;

  ~Lock() {
    if (word_ != nullptr && word_->exchange(kFree, std::memory_order_release) == kAwaited)
      futex::wake(*word_, 1);
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAwaited = 2;  ///< Held, and a thread sleeps for it.

  explicit Lock(futex::Word& word) : word_(&word) {}

  futex::Word* word_;
};

Directory::Directory(const SetRegion& region)
    : region_(region),
      heap_(region),
      names_(region, heap_),
      signatures_(region),
      memory_(region, heap_),
      groups_(region, memory_),
      eviction_(region, names_, memory_, groups_) {}

Result<TensorId> Directory::find_slot(std::string_view name) {
  const auto capacity = region_.params().capacity;
  const auto count = region_.body().tensor_count.load(std::memory_order_relaxed);
  if (count >= capacity) {
    if (const auto freed = eviction_.free_slot()) return *freed;
    return fail(Errc::resource_exhausted,
                "no room for the name of tensor '{}': all {} names are in use; wait for some "
                "operations, or raise HORO_CACHE_CAPACITY",
                name, capacity);
  }
  if (count % kTensorBlock == 0) HORO_TRY_STATUS(back_tensors(count));
  return TensorId{count};
}

Status Directory::back_tensors(std::uint32_t first) {
  const auto& params = region_.params();
  const auto& layout = region_.layout();
  const auto back = [&](std::uint64_t table, std::uint64_t size) {
    const auto block = std::min(kTensorBlock, params.capacity - first);
    return region_.allocate(table + first * size, block * size);
  };
  HORO_TRY_STATUS(back(layout.tensors, sizeof(TensorSlot)));
  if (layout.mark_groups != 0)
    HORO_TRY_STATUS(back(layout.marks, layout.mark_groups * sizeof(MarkGroup)));
  for (std::uint64_t m = 0; m < params.local_size; ++m) {
    const auto rows = m * params.capacity * sizeof(RankTensor);
    HORO_TRY_STATUS(back(layout.rank_tensors + rows, sizeof(RankTensor)));
  }
  return {};
}

Result<TensorId> Directory::add_tensor(std::string_view name, std::uint32_t hash,
                                       const Signature& s) {
  HORO_TRY(const auto id, find_slot(name));
  auto& body = region_.body();
  auto& slot = region_.tensor(id);
  HORO_TRY_STATUS(names_.store(slot, name, hash));
  HORO_TRY(const auto signature, signatures_.intern(s, 0));
  slot.signature.store(signature, std::memory_order_relaxed);
  slot.last_entry.store(body.tail.load(std::memory_order_relaxed), std::memory_order_relaxed);
  memory_.provide_payloads(slot, s);
  // Only now: freeing a slot moves entries of the name table.
  names_.insert(id);
  if (id.value() == body.tensor_count.load(std::memory_order_relaxed))
    body.tensor_count.store(id.value() + 1, std::memory_order_release);
  return id;
}

Result<TensorId> Directory::find_or_add(std::string_view name, const Signature& signature) {
  const auto hash = NameTable::hash_of(name);
  HORO_TRY(const auto known, names_.find(name, hash));
  if (known) return *known;
  return add_tensor(name, hash, signature);
}

Result<std::optional<TensorHandle>> Directory::handle_of(std::string_view name) {
  HORO_TRY(const auto lock, Lock::take(region_));
  HORO_TRY(const auto known, names_.find(name, NameTable::hash_of(name)));
  if (!known) return std::optional<TensorHandle>();
  return std::optional(
      TensorHandle{*known, region_.tensor(*known).incarnation.load(std::memory_order_relaxed)});
}

Result<TensorHandle> Directory::declare(std::string_view name, const Signature& signature,
                                        const GroupName& group) {
  if (name.empty() || name.size() > kLongestName || Groups::is_slot_name(name)) {
    return fail(Errc::invalid_argument,
                "a tensor name of {} bytes; allowed are 1 to {}, not beginning with \\x01",
                name.size(), kLongestName);
  }
  HORO_TRY(const auto lock, Lock::take(region_));
  HORO_TRY(const auto in, find_group(group));
  // Keeps the group's slot while a slot for the tensor is looked for.
  std::atomic<std::uint32_t> held{0};
  groups_.move(held, in);
  auto declared = declare_in(name, signature, in);
  groups_.move(held, 0);
  return declared;
}

Result<TensorHandle> Directory::declare_in(std::string_view name, const Signature& signature,
                                           std::uint32_t group) {
  HORO_TRY(const auto id, find_or_add(name, signature));
  auto& slot = region_.tensor(id);
  HORO_TRY_STATUS(memory_.provide_splits(id, signature));
  HORO_TRY(const auto number,
           signatures_.intern(signature, slot.signature.load(std::memory_order_relaxed)));
  auto& mine = region_.rank_tensor(id, region_.me());
  mine.pins.fetch_add(1, std::memory_order_seq_cst);
  mine.signature.store(number, std::memory_order_relaxed);
  groups_.move(mine.group, group);
  return TensorHandle{id, slot.incarnation.load(std::memory_order_relaxed)};
}

Result<TensorId> Directory::hold(std::string_view name, const Signature& signature) {
  HORO_TRY(const auto lock, Lock::take(region_));
  HORO_TRY(const auto id, find_or_add(name, signature));
  auto& slot = region_.tensor(id);
  HORO_TRY(const auto number,
           signatures_.intern(signature, slot.signature.load(std::memory_order_relaxed)));
  slot.held.store(1, std::memory_order_relaxed);
  slot.signature.store(number, std::memory_order_release);
  return id;
}

Result<std::uint32_t> Directory::find_group(const GroupName& group) {
  if (!group.exists()) return 0U;
  if (group.name.size() > kLongestName || group.size > region_.params().capacity) {
    return fail(
        Errc::invalid_argument,
        "a group of {} tensors with a name of {} bytes; a group has at most {} tensors and a "
        "name of at most {} bytes",
        group.size, group.name.size(), region_.params().capacity, kLongestName);
  }
  Signature nothing;
  nothing.kind = Kind::barrier;
  HORO_TRY(const auto slot, find_or_add(Groups::slot_name(group), nothing));
  HORO_TRY(auto* const record, memory_.provide_aside(slot));
  record->group_size = group.size;
  return slot.value() + 1;
}

}  // namespace horo::runtime
