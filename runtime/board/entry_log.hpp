// SPDX-License-Identifier: Apache-2.0
// The log of a process set on one host: what its members run, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "runtime/board/entry.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns the log's slots, its words and its tail. Every member reads all entries; one thread at a
/// time appends: the holder of the combiner word, or the set's leader on this host.
class EntryLog {
 public:
  /// How many row counts an allgather's tensor brings.
  enum class Rows : std::uint8_t {
    one_per_member,  ///< Members on this host are all there are.
    unknown,         ///< Members on other hosts have theirs too; the engine checks the number.
  };

  EntryLog(const SetRegion& region, Marks& marks, Rows rows)
      : region_(region), marks_(marks), rows_(rows) {}

  /// Entries published since the beginning. Thread: any.
  std::uint64_t published() const { return region_.body().tail.load(std::memory_order_seq_cst); }

  /// Entries that some attached member has not done. Thread: any.
  std::uint64_t in_flight() const {
    const auto tail = published();
    return tail - region_.least_cursor(tail);
  }

  /// Another entry may be appended now. Thread: any.
  bool has_room() const { return in_flight() < region_.params().depth; }

  /// Entry number `cursor`, if it is published. The entry points into `words`, where its words are
  /// copied before they are checked: other processes can change them on the board. Thread: the
  /// holder of the progress token. Fails: protocol (poison the board then).
  Result<std::optional<Entry>> read(std::uint64_t cursor, EntryWords& words) const {
    if (published() <= cursor) return std::optional<Entry>{};
    return read_published(cursor, words);
  }

  /// This rank is done with all entries before `cursor`. Thread: the holder of the progress token.
  void advance(std::uint64_t cursor) {
    region_.area(region_.me()).cursor.store(cursor, std::memory_order_seq_cst);
  }

  /// The most words (ids, row counts and so on) that an entry may have.
  std::size_t most_words() const {
    return region_.layout().word_count / (2 * region_.params().depth);
  }

  /// The tuning after all published entries. `applied` is this rank's, which has not reached the
  /// last of them yet. Thread: the one that appends.
  Tuning tuning_at_end(const AppliedTuning& applied) const;

  /// Says what an entry asks of a member that nobody drives.
  enum class Need : std::uint8_t {
    run,      ///< The member runs the entry soon, because peers need its share or its answer.
    nothing,  ///< Each member computes its results alone, from what lies on the board.
  };

  /// Appends an entry whose first words are its tensors' ids, and clears the marks of these.
  /// Thread: the one that appends.
  void append(LogSlot entry, std::span<const std::uint64_t> words, Need need = Need::run);

  /// Entries are published that this rank has not begun, and peers need that it runs them soon.
  /// `begun`: those that it has begun. Thread: any.
  bool needs(std::uint64_t begun) const {
    return region_.body().needed.load(std::memory_order_seq_cst) > begun;
  }

 private:
  Result<std::optional<Entry>> read_published(std::uint64_t cursor, EntryWords& words) const;
  Status interpret(const LogSlot& slot, std::uint64_t cursor, std::span<const std::uint64_t> words,
                   Entry& entry) const;

  const SetRegion& region_;
  Marks& marks_;
  const Rows rows_;
};

}  // namespace horo::runtime
