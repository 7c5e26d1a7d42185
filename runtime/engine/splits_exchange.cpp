// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/splits_exchange.hpp"

#include <algorithm>

namespace horo::runtime {

void SplitsExchange::add(std::size_t tensor, std::span<const std::uint64_t> rows,
                         std::uint64_t row_elements) {
  for (std::size_t m = 0; m < members_; ++m) {
    out_[m * words() + tensor] = rows[m];
    elements_[m] += rows[m] * row_elements;
  }
}

Bucket SplitsExchange::bucket(int position) {
  const auto longest = *std::max_element(elements_.begin(), elements_.end());
  for (std::size_t m = 0; m < members_; ++m) out_[m * words() + tensors_] = longest;
  Bucket bucket;
  bucket.like.kind = Kind::alltoall;
  bucket.like.dtype = DType::i64;
  bucket.parts.push_back(
      {.in = out_.data(), .out = in_.data(), .elements = out_.size(), .row_elements = words()});
  bucket.peers.assign(members_,
                      {.sent = 1, .received = 1, .before = static_cast<std::uint64_t>(position)});
  bucket.longest = words();
  return bucket;
}

void SplitsExchange::read(std::size_t tensor, std::vector<PeerRows>& peers) const {
  for (std::size_t m = 0; m < members_; ++m) {
    const auto at = m * words() + tensor;
    peers.push_back({.sent = out_[at], .received = in_[at]});
  }
}

Result<std::uint64_t> SplitsExchange::longest(std::span<const std::uint64_t> row_elements) const {
  std::uint64_t longest = 0;
  for (std::size_t m = 0; m < members_; ++m) {
    const auto* const theirs = in_.data() + m * words();
    const auto most = theirs[tensors_];
    std::uint64_t left = most;
    for (std::size_t t = 0; t < tensors_; ++t) {
      const auto row = row_elements[t];
      if (row == 0) continue;
      if (most > kMostElements || theirs[t] > left / row) {
        return fail(Errc::protocol,
                    "member {} of an alltoall sends {} rows, but at most {} elements", m, theirs[t],
                    most);
      }
      left -= theirs[t] * row;
    }
    longest = std::max(longest, most);
  }
  return longest;
}

}  // namespace horo::runtime
