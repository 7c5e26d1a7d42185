// SPDX-License-Identifier: Apache-2.0
#include "base/codec/content_digest.hpp"

#include <bit>
#include <cstring>

namespace horo {

namespace {

// Eight words are mixed side by side, because one multiplication takes several cycles.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = kLanes * sizeof(std::uint64_t);
using Lanes = std::array<std::uint64_t, kLanes>;

// Odd numbers without a pattern: the fractions of pi and of the golden ratio.
constexpr std::uint64_t kFirst = 0x243f6a8885a308d3;
constexpr std::uint64_t kSecond = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kThird = 0x13198a2e03707345;
constexpr int kTurn = 29;
constexpr int kHalf = 32;

/// One-to-one in `state` and in `word`, so that a single different word always shows. A product
/// spreads a bit only upwards: the turn between the two products brings the highest bits down. So
/// no change of few bits in the next word takes back one of few bits in this word.
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return std::rotl(state + word * kThird, kTurn) * kSecond;
}

std::uint64_t finish(std::uint64_t value) {
  value = (value ^ (value >> kHalf)) * kThird;
  value = (value ^ (value >> kTurn)) * kFirst;
  return value ^ (value >> kHalf);
}

void take_block(Lanes& lanes, const std::byte* from) {
  Lanes words;
  std::memcpy(words.data(), from, kBlock);
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = mix(lanes[i], words[i]);
}

}  // namespace

ContentDigest digest_of(std::span<const std::byte> content) {
  Lanes lanes{};
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = kFirst * (i + 1);
  std::size_t at = 0;
  for (; at + kBlock <= content.size(); at += kBlock) take_block(lanes, content.data() + at);
  if (at < content.size()) {
    std::array<std::byte, kBlock> last{};
    std::memcpy(last.data(), content.data() + at, content.size() - at);
    take_block(lanes, last.data());
  }
  ContentDigest digest{content.size(), ~std::uint64_t{content.size()}};
  for (const auto lane : lanes) {
    digest[0] = mix(digest[0], lane);
    digest[1] = finish(digest[1] ^ lane);
  }
  return {finish(digest[0]), finish(digest[1])};
}

}  // namespace horo
