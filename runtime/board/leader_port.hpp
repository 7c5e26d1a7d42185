// SPDX-License-Identifier: Apache-2.0
// Between a board and the leader of its host, for a set with members on other hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/board/directory/directory.hpp"
#include "runtime/board/entry_log.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/board/ready_list.hpp"
#include "runtime/board/start_places.hpp"
#include "runtime/host/set_bells.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns what the leader has taken from the board so far. The leader is the host's first rank,
/// member or not: it tells the other hosts which tensors are ready here, and publishes the entries
/// that all hosts agree on. Ranks of such a set append nothing themselves.
class LeaderPort {
 public:
  LeaderPort(const SetRegion& region, Directory& directory, const Marks& marks, ReadyList& ready,
             EntryLog& log, StartPlaces& places, const SetBells& bells);

  // -- By every member. Thread: any -------------------------------------------------------------

  /// The leader would find something: ready tensors while fewer than `depth` entries are to be run
  /// here, members that join or leave, room for entries that wait, or entries that have been run.
  bool needs_leader() const;

  /// This rank submits nothing more. For a leader that is no member: no member of this host does.
  void leave();

  /// The log says that a rank has left: nothing is appended any more.
  bool is_closed() const { return region_.body().closed.load(std::memory_order_acquire) != 0; }

  // -- By the leader, one thread at a time ------------------------------------------------------

  /// Takes the ready tensors, in the order in which they became ready.
  void take_ready(std::vector<TensorId>& out);

  /// The inputs of the members here for a ready tensor, one behind the other. None: they do not all
  /// lie beside their marks, or are too large to be carried.
  std::optional<std::string> inputs(TensorId id) const;

  /// The tensor of a name that the other hosts agreed on while all members here had joined. It
  /// keeps its slot until an entry with it is published. None: all slots are in use now, and there
  /// is one when entries have been run. Blocks and fails as Directory::declare.
  Result<std::optional<TensorId>> define(std::string_view name, const Signature& signature);

  /// Entries that the first member here has run.
  std::uint64_t take_done();

  /// Members that have joined, or that leave, and were not taken yet.
  std::vector<Rank> take_joined();
  std::vector<Rank> take_leaving();

  /// The place of an agreed entry whose first tensor is `first`; 0: it is in host memory. Called
  /// for all sets in the order of the root's sequence.
  std::uint64_t take_place(TensorId first);

  /// Appends to the log; false when there is no room. needs_leader() says when there is.
  bool publish(const AgreedEntry& agreed);

  /// The most words (ids, row counts) and tensors that an entry may have.
  std::size_t most_words() const { return log_.most_words(); }

  std::size_t most_tensors() const { return most_words() / (1 + kSignatureWords); }

 private:
  using Mask = std::array<std::uint64_t, kMaskWords>;
  using SharedMask = std::array<std::atomic<std::uint64_t>, kMaskWords>;

  void leave(int member);
  std::vector<Rank> take_new(Mask& seen, const SharedMask& now,
                             std::atomic<std::uint32_t>& taken) const;
  LogSlot slot_for(const AgreedEntry& agreed) const;
  void write_words(const AgreedEntry& agreed, bool partial);

  const SetRegion& region_;
  Directory& directory_;
  const Marks& marks_;
  ReadyList& ready_;
  EntryLog& log_;
  StartPlaces& places_;
  const SetBells& bells_;

  // The leader's.
  Mask joined_seen_{};
  Mask leaving_seen_{};
  std::vector<std::uint64_t> words_;
};

}  // namespace horo::runtime
