// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/mismatch.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace horo::runtime::tree {

namespace {

/// The signature of the lowest rank, with which all others are compared.
const Signature& of_lowest(const Variants& variants) {
  const auto lowest = [](const auto& v) { return v.second.ranges().front().first; };
  return *std::min_element(
              variants.begin(), variants.end(),
              [&lowest](const auto& a, const auto& b) { return lowest(a) < lowest(b); })
              ->first;
}

}  // namespace

bool compatible(const Variants& variants) {
  const auto& first = of_lowest(variants);
  return std::all_of(variants.begin(), variants.end(), [&first](const auto& variant) {
    return runtime::compatible(first, *variant.first);
  });
}

MismatchReport describe_mismatch(std::string_view name, const Variants& variants) {
  const auto& first = of_lowest(variants);
  Difference found;
  for (const auto& [signature, ranks] : variants) {
    if (found.subject == ErrorSubject::none) found = difference(first, *signature);
  }
  std::map<std::string, RankRanges> ranks_by_value;
  for (const auto& [signature, ranks] : variants) {
    const auto theirs = difference(first, *signature);
    if (theirs.subject == ErrorSubject::none) {
      ranks_by_value[found.a].add(ranks);
    } else if (theirs.subject == found.subject) {
      ranks_by_value[theirs.b].add(ranks);
    }
  }
  std::string text = fmt::format("tensor '{}': ranks disagree about the {}:", name.substr(0, 400),
                                 runtime::name(found.subject));
  const char* separator = " ";
  for (const auto& [value, ranks] : ranks_by_value) {
    text += fmt::format("{}{} on rank{} {}", separator, value, ranks.size() > 1 ? "s" : "",
                        ranks.text());
    separator = ", ";
    if (text.size() > 1500) break;
  }
  return {.subject = found.subject, .text = std::move(text)};
}

}  // namespace horo::runtime::tree
