// SPDX-License-Identifier: Apache-2.0
#include "base/codec/content_digest.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

using horo::ContentDigest;
using horo::digest_of;

namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 7 % 251);
  return bytes;
}

}  // namespace

TEST_CASE("equal contents have equal digests wherever they lie in memory") {
  const auto bytes = pattern(1000);
  std::vector<std::byte> moved(1003);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 3);
  CHECK(digest_of(bytes) == digest_of(std::span(moved).subspan(3)));
}

TEST_CASE("every flipped bit and every pair of flipped highest bits changes the digest") {
  auto bytes = pattern(200);
  std::set<ContentDigest> seen{digest_of(bytes)};
  std::size_t made = 1;
  const auto flip = [&](std::size_t bit) { bytes[bit / 8] ^= std::byte(1U << bit % 8); };
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit, ++made) {
    flip(bit);
    seen.insert(digest_of(bytes));
    flip(bit);
  }
  // The signs of two numbers of 32 bits, which weak sums let cancel each other.
  for (std::size_t a = 31; a < 8 * bytes.size(); a += 32) {
    for (std::size_t b = a + 32; b < 8 * bytes.size(); b += 32, ++made) {
      flip(a);
      flip(b);
      seen.insert(digest_of(bytes));
      flip(a);
      flip(b);
    }
  }
  // The highest bit of a word and a bit of the word that is mixed into the same lane next.
  for (std::size_t bit = 512; bit < 576; ++bit) {
    if (bit % 32 == 31) continue;
    flip(63);
    flip(bit);
    seen.insert(digest_of(bytes));
    flip(63);
    flip(bit);
    ++made;
  }
  CHECK(seen.size() == made);
}

TEST_CASE("contents of zeros differ by their lengths, and exchanged words show") {
  std::set<ContentDigest> seen;
  for (std::size_t size = 0; size < 300; ++size)
    seen.insert(digest_of(std::vector<std::byte>(size)));
  CHECK(seen.size() == 300);
  auto bytes = pattern(256);
  const auto before = digest_of(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 64);  // the same lane
  CHECK(digest_of(bytes) != before);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 64);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);  // another lane
  CHECK(digest_of(bytes) != before);
}
