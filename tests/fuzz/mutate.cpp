// SPDX-License-Identifier: Apache-2.0
#include "mutate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace horo::fuzz {

namespace {

// The distributions of the standard library differ between implementations; this function does not.
std::size_t below(std::size_t limit, std::mt19937_64& random) {
  return limit == 0 ? 0 : random() % limit;
}

/// Numbers at which lengths and counts often go wrong.
constexpr std::array<std::uint64_t, 12> kNumbers{
    0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffffffffffff};

void write_number(std::string& text, std::mt19937_64& random) {
  const std::size_t width = std::size_t{1} << below(4, random);
  if (text.size() < width) return;
  const auto position = below(text.size() - width + 1, random);
  const auto number = kNumbers[below(kNumbers.size(), random)];
  for (std::size_t i = 0; i < width; ++i)
    text[position + i] = static_cast<char>(number >> (8U * i));
}

void change(std::string& text, const Target& target, std::mt19937_64& random) {
  const auto position = below(text.size() + 1, random);
  const auto length = below(std::min<std::size_t>(text.size() - position, 32) + 1, random);
  const auto any = static_cast<char>(random());
  switch (below(8, random)) {
    case 0:
      if (position < text.size())
        text[position] = static_cast<char>(text[position] ^ (1U << below(8, random)));
      break;
    case 1:
      if (position < text.size()) text[position] = any;
      break;
    case 2:
      text.insert(position, 1, any);
      break;
    case 3:
      text.erase(position, length);
      break;
    case 4:
      text.insert(position, std::string(text, position, length));
      break;
    case 5:
      write_number(text, random);
      break;
    case 6:
      if (!target.words.empty())
        text.insert(position, target.words[below(target.words.size(), random)]);
      break;
    case 7: {
      const auto& other = target.seeds[below(target.seeds.size(), random)];
      text.resize(position);
      text.append(other, below(other.size() + 1, random));
      break;
    }
  }
}

}  // namespace

std::string mutated(const Target& target, std::mt19937_64& random) {
  std::string text = target.seeds[below(target.seeds.size(), random)];
  for (auto changes = 1 + below(8, random); changes > 0; --changes) change(text, target, random);
  return text;
}

}  // namespace horo::fuzz
