// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/payload_runner.hpp"

#include <cstring>
#include <span>
#include <utility>

#include "runtime/board/entry_words.hpp"
#include "runtime/bucket/lanes.hpp"
#include "runtime/bucket/run_alone.hpp"
#include "runtime/tensor/carried_sum.hpp"

namespace horo::runtime {

Status PayloadRunner::run_in_marks(const Bucket& bucket) {
  if (moves_nothing(bucket.like.kind)) return {};
  for (std::size_t at = 0; at < bucket.parts.size(); ++at) {
    HORO_TRY_STATUS(find_payloads(bucket, at));
    if (reduces(bucket.like.kind)) {
      reduce_payloads(bucket, at);
    } else {
      copy_payloads(bucket, at);
    }
  }
  return {};
}

Status PayloadRunner::run_carried(const Bucket& bucket, std::span<const std::uint64_t> inputs,
                                  int members) {
  const auto& like = bucket.like;
  carried_.resize(static_cast<std::size_t>(members));
  for (const auto& part : bucket.parts) {
    const auto bytes = part.elements * size_of(like.dtype);
    if (!is_carried(claims_.signature(part.id), members) ||
        words_of(bytes * carried_.size()) > inputs.size()) {
      return fail(Errc::protocol, "tensor '{}' has no inputs in the entry that carries them",
                  board_.region().tensor_name(part.id));
    }
    const auto* from = reinterpret_cast<const std::byte*>(inputs.data());
    for (auto& source : carried_) source = std::exchange(from, from + bytes);
    combine_parts(like, carried_, part.elements, part.out);
    inputs = inputs.subspan(words_of(bytes * carried_.size()));
  }
  return {};
}

Status PayloadRunner::find_payloads(const Bucket& bucket, std::size_t at) {
  const auto& part = bucket.parts[at];
  const auto& region = board_.region();
  const auto parity = claims_.tensor(part.id).parity;
  for (int m = 0; m < region.local_size(); ++m) {
    const auto bytes =
        elements_from(bucket, at, m, region.local_size()) * size_of(bucket.like.dtype);
    auto& source = sources_[static_cast<std::size_t>(m)];
    source = board_.directory().memory().payload(part.id, m, parity, bytes);
    if (source == nullptr && bytes != 0) {
      return fail(Errc::protocol, "tensor '{}' has no payload slot on the board",
                  region.tensor_name(part.id));
    }
  }
  return {};
}

void PayloadRunner::reduce_payloads(const Bucket& bucket, std::size_t at) {
  const auto& like = bucket.like;
  const auto& part = bucket.parts[at];
  auto elements = part.elements;
  if (like.kind == Kind::reducescatter) {
    const auto& region = board_.region();
    const auto mine = share_of(claims_.signature(part.id).rows(), region.local_size(), region.me());
    elements = mine.count * part.row_elements;
    const auto skipped = mine.first * part.row_elements * size_of(like.dtype);
    for (auto& source : sources_) source = static_cast<const std::byte*>(source) + skipped;
  }
  if (elements != 0) combine_parts(like, sources_, elements, part.out);
}

void PayloadRunner::copy_payloads(const Bucket& bucket, std::size_t at) const {
  const auto& part = bucket.parts[at];
  const auto kind = bucket.like.kind;
  const auto n = sources_.size();
  const auto row = part.row_elements * size_of(bucket.like.dtype);
  auto* to = static_cast<std::byte*>(part.out);
  const auto copy = [&to](const void* from, std::uint64_t skipped, std::uint64_t bytes) {
    if (bytes == 0) return;
    std::memcpy(to, static_cast<const std::byte*>(from) + skipped, bytes);
    to += bytes;
  };
  if (kind == Kind::broadcast) {
    copy(sources_[static_cast<std::size_t>(bucket.like.root)], 0,
         part.elements * size_of(bucket.like.dtype));
    return;
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (kind == Kind::allgather) {
      copy(sources_[r], 0, bucket.rows[at * n + r] * row);
      continue;
    }
    const auto& rows = bucket.peers[at * n + r];
    copy(sources_[r], rows.before * row, rows.received * row);
  }
}

}  // namespace horo::runtime
