// SPDX-License-Identifier: Apache-2.0
// Entries that need no backend: this rank computes its results alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/engine/claims.hpp"

namespace horo::runtime {

/// Runs entries at once, without waiting for peers. Thread: the holder of the progress token.
class PayloadRunner {
 public:
  PayloadRunner(const Board& board, const Claims& claims)
      : board_(board),
        claims_(claims),
        sources_(static_cast<std::size_t>(board.region().local_size())) {}

  /// All ranks' payloads lie on the board. Fails: protocol.
  Status run_in_marks(const Bucket& bucket);

  /// `inputs` are those of the entry, which has all members'. Fails: protocol.
  Status run_carried(const Bucket& bucket, std::span<const std::uint64_t> inputs, int members);

 private:
  Status find_payloads(const Bucket& bucket, std::size_t at);
  void reduce_payloads(const Bucket& bucket, std::size_t at);
  void copy_payloads(const Bucket& bucket, std::size_t at) const;

  const Board& board_;
  const Claims& claims_;
  std::vector<const void*> sources_;  ///< Payloads of one tensor, by rank.
  std::vector<const void*> carried_;  ///< The same of a carried one, by member.
};

}  // namespace horo::runtime
