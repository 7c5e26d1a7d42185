// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/stall_report.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace horo::runtime {

namespace {

constexpr std::size_t kMostNames = 6;
constexpr std::size_t kMostRanks = 8;
constexpr std::size_t kMostLines = 4;
constexpr std::size_t kMostNameShown = 200;
constexpr int kMostLevels = 32;

std::string in_seconds(Duration d) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  if (ms < 10'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  return fmt::format("{} s", ms / 1000);
}

using Group = std::vector<const Stalled*>;

bool alike(const Stalled& a, const Stalled& b) {
  return a.missing == b.missing && a.more == b.more && a.under_way == b.under_way &&
         a.group == b.group;
}

std::string names_of(const Group& tensors) {
  std::string text = tensors.size() == 1 ? "tensor " : "tensors ";
  for (std::size_t i = 0; i < std::min(tensors.size(), kMostNames); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", tensors[i]->name.substr(0, kMostNameShown));
  }
  if (tensors.size() > kMostNames) text += fmt::format(" and {} more", tensors.size() - kMostNames);
  return text;
}

/// Says which of the tensors that wait for a rank it has never declared.
std::string undeclared_by(std::size_t member, const Group& tensors) {
  const auto count = std::count_if(tensors.begin(), tensors.end(), [member](const Stalled* t) {
    return std::find(t->undeclared.begin(), t->undeclared.end(), member) != t->undeclared.end();
  });
  if (count == 0) return "";
  if (static_cast<std::size_t>(count) < tensors.size())
    return fmt::format("; never declared {} of them", count);
  return count == 1 ? "; never declared it" : "; never declared them";
}

std::string ranks_of(const Group& tensors, const StallFacts& facts) {
  const auto& missing = tensors.front()->missing;
  std::string text;
  for (std::size_t i = 0; i < std::min(missing.size(), kMostRanks); ++i) {
    const auto& member = facts.members[missing[i]];
    text += fmt::format("{}rank {}{}{} ({}{})", i == 0 ? "" : ", ", member.rank,
                        member.host.empty() ? "" : " on ", member.host, verdict(member, facts.set),
                        undeclared_by(missing[i], tensors));
  }
  const auto rest = missing.size() - std::min(missing.size(), kMostRanks) + tensors.front()->more;
  if (rest > 0) text += fmt::format(" and {} more rank{}", rest, rest == 1 ? "" : "s");
  return text.empty() ? "no rank: it continues now" : text;
}

std::string line_about(const Group& tensors, const StallFacts& facts) {
  const auto& first = *tensors.front();
  Duration age{};
  for (const auto* tensor : tensors) age = std::max(age, tensor->age);
  const bool one = tensors.size() == 1;
  const char* has = one ? "has" : "have";
  auto text = facts.set == SetId{} ? std::string() : fmt::format("process set {}: ", facts.set);
  text += names_of(tensors);
  if (first.under_way) {
    text += fmt::format(" {} not moved for {}", has, in_seconds(age));
  } else {
    text += fmt::format(" {} waited {}", has, in_seconds(age));
  }
  if (!first.group.empty()) {
    text += fmt::format(" for the other tensors of group '{}', which ",
                        first.group.substr(0, kMostNameShown));
    return text + (first.missing.empty() ? "no rank has submitted"
                                         : fmt::format("wait for {}", ranks_of(tensors, facts)));
  }
  const char* wait =
      first.under_way ? (one ? " and needs the share of " : " and need the share of ") : " for ";
  return text + wait + ranks_of(tensors, facts);
}

std::string busy(const MemberFacts& m) {
  const auto since = m.idle == Duration::zero()
                         ? std::string("not called since horo_init")
                         : fmt::format("which it last called {} ago", in_seconds(m.idle));
  switch (m.process) {
    case ProcessState::running:
      return fmt::format("busy outside libhoro, {}", since);
    case ProcessState::sleeping:
      return fmt::format("asleep outside libhoro, {}", since);
    case ProcessState::unknown:
    case ProcessState::stopped:
    case ProcessState::traced:
    case ProcessState::blocked:
    case ProcessState::gone:
      break;
  }
  return fmt::format("outside libhoro, {}", since);
}

}  // namespace

int stall_level(Duration age, Duration warning) {
  int level = 0;
  while (level < kMostLevels && age >= stall_threshold(level, warning)) ++level;
  return level;
}

Duration stall_threshold(int level, Duration warning) {
  const auto factor = std::int64_t{1} << std::min(level, kMostLevels);
  return warning > Duration::max() / factor ? Duration::max() : warning * factor;
}

std::string verdict(const MemberFacts& m, SetId set) {
  if (!m.verdict.empty()) return m.verdict;
  if (m.state == RankState::absent) return "has not called horo_init";
  if (m.state == RankState::detached) return "has left the job";
  if (m.state == RankState::dead || m.process == ProcessState::gone) return "has exited";
  if (m.process == ProcessState::stopped) return "stopped, by SIGSTOP or Ctrl-Z";
  if (m.process == ProcessState::traced) return "held by a debugger";
  if (m.process == ProcessState::blocked)
    return "in uninterruptible sleep, as on a device or file system that hangs";
  if (m.state == RankState::leaving) return "is leaving the job";
  if (m.waits_for.empty()) return busy(m);
  const auto name = m.waits_for.substr(0, kMostNameShown);
  return m.waits_in == set
             ? fmt::format("waits for tensor '{}'", name)
             : fmt::format("waits for tensor '{}' of process set {}", name, m.waits_in);
}

std::vector<std::string> stall_lines(const StallFacts& facts) {
  std::vector<Group> groups;
  for (const auto& tensor : facts.tensors) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&tensor](const Group& group) {
      return alike(*group.front(), tensor);
    });
    if (same == groups.end()) {
      groups.push_back({&tensor});
    } else {
      same->push_back(&tensor);
    }
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostLines); ++i)
    lines.push_back(line_about(groups[i], facts));
  if (groups.size() > kMostLines) {
    std::size_t rest = 0;
    for (std::size_t i = kMostLines; i < groups.size(); ++i) rest += groups[i].size();
    lines.back() += fmt::format("; and {} more tensors wait for other ranks", rest);
  }
  if (facts.more > 0 && !lines.empty())
    lines.back() += fmt::format("; and {} more tensors wait", facts.more);
  return lines;
}

}  // namespace horo::runtime
