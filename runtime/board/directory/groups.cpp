// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/groups.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace horo::runtime {

namespace {

constexpr std::string_view kPrefix = "\x01";

}  // namespace

std::string Groups::slot_name(const GroupName& group) {
  return fmt::format("{}{}/{}", kPrefix, group.name, group.size);
}

bool Groups::is_slot_name(std::string_view name) {
  return name.substr(0, kPrefix.size()) == kPrefix;
}

GroupRef Groups::of(TensorId id, int member) const {
  const auto slot = region_.rank_tensor(id, member).group.load(std::memory_order_relaxed);
  const auto* const group = record(slot);
  return group == nullptr ? GroupRef{} : GroupRef{.slot = slot, .size = group->group_size};
}

std::string_view Groups::name(GroupRef group) const {
  if (group.slot == 0 || group.slot > region_.params().capacity) return {};
  auto name = region_.tensor_name(TensorId{group.slot - 1});
  name = name.substr(std::min(kPrefix.size(), name.size()));
  return name.substr(0, name.rfind('/'));
}

void Groups::move(std::atomic<std::uint32_t>& member, std::uint32_t group) {
  const auto before = member.load(std::memory_order_relaxed);
  if (before == group) return;
  if (auto* const left = record(before); left != nullptr) --left->group_refs;
  if (auto* const entered = record(group); entered != nullptr) ++entered->group_refs;
  member.store(group, std::memory_order_relaxed);
}

}  // namespace horo::runtime
