// SPDX-License-Identifier: Apache-2.0
// An entry of a process set's log, as ranks read it and as a leader writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong.hpp"
#include "runtime/host/board_layout.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Words of the log that a signature takes.
inline constexpr std::size_t kSignatureWords = (sizeof(Signature) + 7) / 8;

/// The words of an entry, in this process's own memory.
using EntryWords = std::vector<std::uint64_t>;

/// One entry as read from the board. The spans point into the reader's EntryWords.
struct Entry {
  EntryKind kind = EntryKind::work;
  DataPath path = DataPath::staged;
  std::span<const std::uint64_t> ids;
  /// Signatures of the entry's tensors. Filled only when a joined rank takes part, because it may
  /// never have declared them.
  std::span<const std::uint64_t> signatures;
  std::span<const std::uint64_t> rows;  ///< allgather: extent 0, tensor by tensor, rank by rank.
  /// DataPath::carried: tensor by tensor, the inputs of all members one behind the other, each
  /// tensor's filled up to a whole word.
  std::span<const std::uint64_t> inputs;
  Rank last_joined{-1};   ///< join: the rank that joined last.
  Rank left{-1};          ///< left: the lowest rank that has left.
  std::string_view text;  ///< mismatch: a MismatchReport as bytes.
  Tuning tuning;          ///< tuning: the new values.
  std::uint64_t bytes = 0;
  std::uint64_t place = 0;  ///< See StartPlaces; 0: in host memory.
};

/// An entry that all hosts of a set have agreed on, for the log of this host.
struct AgreedEntry {
  EntryKind kind = EntryKind::work;
  std::span<const TensorId> ids;
  std::span<const std::uint64_t> rows;  ///< As in Entry, of the members on all hosts.
  std::span<const std::string> inputs;  ///< By tensor, if the entry carries them; else empty.
  std::string_view text;                ///< mismatch: a MismatchReport as bytes.
  Rank rank{-1};                        ///< join, left.
  Tuning tuning;                        ///< tuning.
  std::uint64_t place = 0;              ///< As in Entry.
  std::uint64_t next_place = 0;  ///< The next entry that waits and has one has this; 0: none.
};

}  // namespace horo::runtime
