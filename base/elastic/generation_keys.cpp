// SPDX-License-Identifier: Apache-2.0
#include "base/elastic/generation_keys.hpp"

#include <array>
#include <charconv>

namespace horo::elastic {

namespace {

constexpr std::array<std::string_view, 4> kTopics{"horo/hosts/table/", "horo/hosts/", "horo/tree/",
                                                  "horo/sets/"};

}  // namespace

std::optional<std::uint64_t> generation_of_key(std::string_view key) {
  for (const auto topic : kTopics) {
    if (!key.starts_with(topic)) continue;
    const auto rest = key.substr(topic.size());
    std::uint64_t generation = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), generation);
    const bool whole = stop == rest.data() + rest.size() || *stop == '/';
    if (error == std::errc{} && whole) return generation;
  }
  return std::nullopt;
}

}  // namespace horo::elastic
