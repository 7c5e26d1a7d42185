// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/engine/transfers.hpp"

namespace horo::runtime {

/// The members of an alltoall tell each other how many rows they send. Every member gets what the
/// others send to it, and nothing else, so that memory and messages grow with the members and not
/// with their square. Thread: the holder of the progress token.
class SplitsExchange {
 public:
  SplitsExchange(std::size_t tensors, std::size_t members)
      : tensors_(tensors),
        members_(members),
        elements_(members),
        out_(members * words()),
        in_(members * words()) {}

  /// The rows of one tensor that this rank sends to each member.
  void add(std::size_t tensor, std::span<const std::uint64_t> rows, std::uint64_t row_elements);

  /// An alltoall of the counts, for the member at `position`. After all add(). This outlives it.
  Bucket bucket(int position);

  // When the bucket has completed.

  /// Appends what this rank exchanges with each member.
  void read(std::size_t tensor, std::vector<PeerRows>& peers) const;

  /// Bucket::longest of the alltoall, by the elements of each tensor's rows. Fails: protocol (a
  /// member sends more than it says).
  Result<std::uint64_t> longest(std::span<const std::uint64_t> row_elements) const;

  Ticket ticket = 0;  ///< The bucket's.

 private:
  /// Words to one member: the rows of each tensor, and the elements that the sender sends to one
  /// member at most.
  std::size_t words() const { return tensors_ + 1; }

  const std::size_t tensors_;
  const std::size_t members_;
  std::vector<std::uint64_t> elements_;  ///< Sent to each member, all tensors together.
  std::vector<std::uint64_t> out_;       ///< Member by member.
  std::vector<std::uint64_t> in_;
};

}  // namespace horo::runtime
