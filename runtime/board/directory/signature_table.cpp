// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/signature_table.hpp"

#include <algorithm>
#include <vector>

#include "runtime/host/read_once.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint32_t kLeast = 64;           // Made before any unused ones are looked for.
constexpr std::uint32_t kSignatureBlock = 64;  // Backed with memory at a time.

std::size_t place_of(const Signature& s) {
  auto hash = s.elements * 0x9e3779b97f4a7c15U ^ s.extents_hash ^
              static_cast<std::uint64_t>(s.extents[0]) << 32U;
  hash ^= static_cast<std::uint64_t>(s.kind) << 8U ^ static_cast<std::uint64_t>(s.dtype) << 4U ^
          static_cast<std::uint64_t>(s.op);
  return (hash * 0xbf58476d1ce4e5b9U >> 40U) % kInterned;
}

}  // namespace

const Signature& SignatureTable::of(std::uint32_t number) const {
  static const Signature kNone{.elements = 0};
  if (number == 0 || number > region_.layout().most_signatures) return kNone;
  return region_.tables().signatures[number - 1];
}

Result<std::uint32_t> SignatureTable::intern(const Signature& signature, std::uint32_t likely) {
  if (likely != 0 && of(likely) == signature) return likely;
  auto& interned = region_.body().interned[place_of(signature)];
  if (interned != 0 && of(interned) == signature) return interned;
  HORO_TRY(const auto number, take());
  region_.tables().signatures[number - 1] = signature;
  interned = number;
  return number;
}

Result<std::uint32_t> SignatureTable::take() {
  auto& body = region_.body();
  const auto& layout = region_.layout();
  const std::uint64_t limit = std::max(body.signature_limit, kLeast);
  if (body.free_signature == 0 && body.signature_count >= std::min(limit, layout.most_signatures))
    free_unused();
  if (const auto free = read_once(body.free_signature);
      free != 0 && free <= layout.most_signatures) {
    body.free_signature =
        static_cast<std::uint32_t>(region_.tables().signatures[free - 1].elements);
    return free;
  }
  const auto count = read_once(body.signature_count);
  if (count >= layout.most_signatures)
    return fail(Errc::protocol, "the board's {} signatures are all in use", count);
  if (count % kSignatureBlock == 0) {
    const auto block = std::min<std::uint64_t>(kSignatureBlock, layout.most_signatures - count);
    HORO_TRY_STATUS(
        region_.allocate(layout.signatures + count * sizeof(Signature), block * sizeof(Signature)));
  }
  body.signature_count = count + 1;
  return count + 1;
}

void SignatureTable::free_unused() {
  auto& body = region_.body();
  const auto count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(read_once(body.signature_count), region_.layout().most_signatures));
  std::vector<bool> used(count + std::size_t{1});
  const auto use = [&](const std::atomic<std::uint32_t>& number) {
    const auto n = number.load(std::memory_order_acquire);
    if (n <= count) used[n] = true;
  };
  for (std::uint32_t i = 0; i < region_.tensor_count(); ++i) {
    use(region_.tensor(TensorId{i}).signature);
    for (int m = 0; m < region_.local_size(); ++m)
      use(region_.rank_tensor(TensorId{i}, m).signature);
  }
  std::uint32_t live = 0;
  for (auto n = count; n > 0; --n) {
    if (used[n]) {
      ++live;
      continue;
    }
    // A free signature keeps the number of the next free one.
    region_.tables().signatures[n - 1].elements = body.free_signature;
    body.free_signature = n;
  }
  for (auto& number : body.interned) {
    if (number > count || !used[number]) number = 0;
  }
  body.signature_limit = std::max(kLeast, 2 * live);
}

}  // namespace horo::runtime
