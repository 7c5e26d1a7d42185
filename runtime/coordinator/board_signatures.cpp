// SPDX-License-Identifier: Apache-2.0
// Signatures, each about once: tensors and ranks hold numbers. A model has thousands of tensors and
// a few dozen shapes. Made and freed under the directory's lock; who reads one has declared it, or
// keeps a tensor from completing whose rank has.
#include <algorithm>
#include <vector>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint32_t kLeast = 64;           // Before anybody looks for those to be freed.
constexpr std::uint32_t kSignatureBlock = 64;  // Backed with memory at a time.

std::size_t place_of(const Signature& s) {
  auto hash = s.elements * 0x9e3779b97f4a7c15U ^ s.extents_hash ^
              static_cast<std::uint64_t>(s.extents[0]) << 32U;
  hash ^= static_cast<std::uint64_t>(s.kind) << 8U ^ static_cast<std::uint64_t>(s.dtype) << 4U ^
          static_cast<std::uint64_t>(s.op);
  return (hash * 0xbf58476d1ce4e5b9U >> 40U) % kInterned;
}

}  // namespace

const Signature& Board::signature_of(std::uint32_t number) const {
  static const Signature kNone{.elements = 0};
  if (number == 0 || number > layout_.most_signatures) return kNone;
  return signatures_[number - 1];
}

Result<std::uint32_t> Board::intern(const Signature& signature, std::uint32_t likely) {
  if (likely != 0 && signature_of(likely) == signature) return likely;
  const auto place = place_of(signature);
  if (const auto last = body_->interned[place]; last != 0 && signature_of(last) == signature)
    return last;
  HORO_TRY(const auto number, take_signature());
  signatures_[number - 1] = signature;
  body_->interned[place] = number;
  return number;
}

Result<std::uint32_t> Board::take_signature() {
  auto& body = *body_;
  const std::uint64_t limit = std::max(body.signature_limit, kLeast);
  if (body.free_signature == 0 && body.signature_count >= std::min(limit, layout_.most_signatures))
    free_signatures();
  if (const auto free = body.free_signature; free != 0 && free <= layout_.most_signatures) {
    body.free_signature = static_cast<std::uint32_t>(signatures_[free - 1].elements);
    return free;
  }
  const auto count = body.signature_count;
  if (count >= layout_.most_signatures)
    return fail(Errc::protocol, "the board's {} signatures are all in use", count);
  if (count % kSignatureBlock == 0) {
    const auto block = std::min<std::uint64_t>(kSignatureBlock, layout_.most_signatures - count);
    HORO_TRY_STATUS(
        allocate(layout_.signatures + count * sizeof(Signature), block * sizeof(Signature)));
  }
  body.signature_count = count + 1;
  return count + 1;
}

void Board::free_signatures() {
  const auto count = body_->signature_count;
  std::vector<bool> used(count + std::size_t{1});
  const auto use = [&](const std::atomic<std::uint32_t>& number) {
    const auto n = number.load(std::memory_order_acquire);
    if (n <= count) used[n] = true;
  };
  const auto tensors = body_->tensor_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < std::min(tensors, params_.capacity); ++i) {
    use(tensors_[i].signature);
    for (int m = 0; m < local_size(); ++m) use(rank_tensor(TensorId{i}, m).signature);
  }
  std::uint32_t live = 0;
  for (auto n = count; n > 0; --n) {
    if (used[n]) {
      ++live;
      continue;
    }
    signatures_[n - 1].elements = body_->free_signature;
    body_->free_signature = n;
  }
  for (auto& number : body_->interned) {
    if (number > count || !used[number]) number = 0;
  }
  body_->signature_limit = std::max(kLeast, 2 * live);
}

}  // namespace horo::runtime
