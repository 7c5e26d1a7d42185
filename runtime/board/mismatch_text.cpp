// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/mismatch_text.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace horo::runtime {

namespace {

/// Ranks as a text of bounded length.
class RankList {
 public:
  void add(Rank rank) {
    ++count_;
    if (text_.size() < 120) text_ += fmt::format("{}{}", text_.empty() ? "" : ", ", rank);
  }

  int count() const { return count_; }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int count_ = 0;
};

std::string group_text(const Groups& groups, GroupRef group) {
  const auto name = groups.name(group);
  if (name.empty()) return "none";
  return fmt::format("'{}' of {}", name.substr(0, 200), group.size);
}

/// The first difference between what members have submitted. The group comes first: where it
/// differs, the group's other tensors may never be complete, which callers must know.
Difference first_difference(const SetRegion& region, const Directory& directory, const Marks& marks,
                            TensorId id) {
  const auto& signatures = directory.signatures();
  const auto& first = signatures.declared(id, marks.first_marked(id));
  Difference found;
  if (!marks.same_group(id)) found.subject = ErrorSubject::group;
  for (int m = 0; m < region.local_size() && found.subject == ErrorSubject::none; ++m) {
    if (marks.has_marked(id, m)) found = difference(first, signatures.declared(id, m));
  }
  return found;
}

}  // namespace

MismatchReport describe_mismatch(const SetRegion& region, const Directory& directory,
                                 const Marks& marks, TensorId id) {
  const auto& signatures = directory.signatures();
  const auto& first = signatures.declared(id, marks.first_marked(id));
  const auto found = first_difference(region, directory, marks, id);
  RankList joined;
  std::map<std::string, RankList> ranks_by_value;
  for (int m = 0; m < region.local_size(); ++m) {
    const auto rank = region.global_rank(m);
    if (!marks.has_marked(id, m)) {
      joined.add(rank);
      continue;
    }
    if (found.subject == ErrorSubject::group) {
      ranks_by_value[group_text(directory.groups(), directory.groups().of(id, m))].add(rank);
      continue;
    }
    const auto d = difference(first, signatures.declared(id, m));
    if (d.subject == ErrorSubject::none || d.subject == found.subject)
      ranks_by_value[d.subject == found.subject ? d.b : found.a].add(rank);
  }
  const auto name = region.tensor_name(id).substr(0, 400);
  if (found.subject == ErrorSubject::none)
    return joined_report(name, first, joined.text(), joined.count());
  std::string text =
      fmt::format("tensor '{}': ranks disagree about the {}:", name, runtime::name(found.subject));
  const char* separator = " ";
  for (const auto& [value, ranks] : ranks_by_value) {
    text += fmt::format("{}{} on rank{} {}", separator, value, ranks.count() > 1 ? "s" : "",
                        ranks.text());
    separator = ", ";
    if (text.size() > 1500) break;
  }
  return {.subject = found.subject, .text = std::move(text)};
}

}  // namespace horo::runtime
