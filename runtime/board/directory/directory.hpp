// SPDX-License-Identifier: Apache-2.0
// The directory of a process set: which tensor slot a name has, and which ranks use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "runtime/board/directory/eviction.hpp"
#include "runtime/board/directory/groups.hpp"
#include "runtime/board/directory/name_table.hpp"
#include "runtime/board/directory/signature_table.hpp"
#include "runtime/board/directory/slot_memory.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// A declared name: its slot, and how many names had the slot before it.
struct TensorHandle {
  TensorId id;
  std::uint32_t incarnation = 0;

  friend bool operator==(const TensorHandle&, const TensorHandle&) = default;
};

/// Owns the directory's lock and gives names their slots. One directory serves all ranks of the
/// host. A rank that dies cannot keep the lock: its death poisons the board, and every thread that
/// waits for the lock looks at the poison. Thread: any.
class Directory {
 public:
  explicit Directory(const SetRegion& region);
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// The tensor of `name`, new or known. Notes this rank's signature and group, and provides memory
  /// for small tensors. When all slots are taken, a name that is not in use loses its slot. The
  /// tensor is pinned: unpin() follows. Blocks: on the directory's lock. Fails: resource_exhausted,
  /// peer_lost, invalid_argument, out_of_memory.
  Result<TensorHandle> declare(std::string_view name, const Signature& signature,
                               const GroupName& group = {});

  /// The tensor of a name that the set's other hosts agreed on while all members here had joined.
  /// It keeps its slot until an entry with it is published. By the leader. Blocks and fails as
  /// declare.
  Result<TensorId> hold(std::string_view name, const Signature& signature);

  /// The tensor of `name`, if there is one. It is not pinned. Blocks and fails as declare.
  Result<std::optional<TensorHandle>> handle_of(std::string_view name);

  /// As handle_of, without the lock. For reports.
  std::optional<TensorId> find_unlocked(std::string_view name) const {
    return names_.find_unlocked(name);
  }

  std::string_view tensor_name(TensorId id) const { return region_.tensor_name(id); }

  // -- Use --------------------------------------------------------------------------------------

  /// Keeps the tensor in its slot until unpin(); false when the slot has another name by now.
  bool pin(TensorHandle handle) {
    auto& pins = region_.rank_tensor(handle.id, region_.me()).pins;
    // Pin, then look at the incarnation; Eviction does the opposite.
    pins.fetch_add(1, std::memory_order_seq_cst);
    if (is_current(handle)) return true;
    pins.fetch_sub(1, std::memory_order_release);
    return false;
  }

  void unpin(TensorId id) {
    region_.rank_tensor(id, region_.me()).pins.fetch_sub(1, std::memory_order_release);
  }

  bool is_pinned(TensorId id, int member) const {
    return region_.rank_tensor(id, member).pins.load(std::memory_order_seq_cst) != 0;
  }

  bool is_current(TensorHandle handle) const {
    return region_.tensor(handle.id).incarnation.load(std::memory_order_seq_cst) ==
           handle.incarnation;
  }

  // -- Parts ------------------------------------------------------------------------------------

  const SignatureTable& signatures() const { return signatures_; }

  const Groups& groups() const { return groups_; }

  const SlotMemory& memory() const { return memory_; }

 private:
  class Lock;

  Result<TensorHandle> declare_in(std::string_view name, const Signature& signature,
                                  std::uint32_t group);
  Result<std::uint32_t> find_group(const GroupName& group);
  Result<TensorId> find_or_add(std::string_view name, const Signature& signature);
  Result<TensorId> add_tensor(std::string_view name, std::uint32_t hash, const Signature& s);
  Result<TensorId> find_slot(std::string_view name);
  Status back_tensors(std::uint32_t first);

  const SetRegion& region_;
  BoardHeap heap_;
  NameTable names_;
  SignatureTable signatures_;
  SlotMemory memory_;
  Groups groups_;
  Eviction eviction_;
};

}  // namespace horo::runtime
