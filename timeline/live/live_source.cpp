// SPDX-License-Identifier: Apache-2.0
#include "timeline/live/live_source.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace horo::timeline {

namespace {

/// Sorts records that consist of a few sorted runs, mostly one for each ring.
void merge_runs(std::vector<Record>& records) {
  constexpr int kFew = 2 * kRings;
  int runs = 0;
  const auto earlier = [](const Record& a, const Record& b) { return a.ticks < b.ticks; };
  for (auto end = records.begin(); end != records.end();) {
    const auto next = std::is_sorted_until(end, records.end(), earlier);
    if (++runs > kFew) return std::stable_sort(records.begin(), records.end(), earlier);
    std::inplace_merge(records.begin(), end, next, earlier);
    end = next;
  }
}

}  // namespace

LiveSource::LiveSource(const RegionReader& reader, std::size_t memory)
    : reader_(reader),
      memory_(memory),
      process_(static_cast<int>(syscall(SYS_pidfd_open, reader_.about().identity.pid, 0))) {}

bool LiveSource::read_identity() {
  const auto pid = identity().pid;
  reader_.read_identity();
  return identity().pid == pid;
}

const NameSlot* LiveSource::name_of(std::uint16_t set, std::uint32_t id) const {
  const TensorKey key{set, id};
  if (const auto known = names_.find(key); known != names_.end()) return &known->second;
  const auto slot = reader_.name_of(set, id);
  return slot ? &names_.insert_or_assign(key, *slot).first->second : nullptr;
}

void LiveSource::forget_name(const Record& declared) {
  names_.erase({declared.set, declared.id});
}

std::vector<Record> LiveSource::drain(std::uint64_t until, const Anchor& now) {
  clock_ = TickClock(reader_.about().anchor, now);
  auto records = std::exchange(held_, {});
  if (const auto missed = reader_.drain(records)) {
    if (drained_) lost_ += *missed;  // The first call does not count: reading had not begun.
    if (*missed != 0) state_.lose_before(wall_ns(reader_.complete_from()));
  }
  drained_ = true;
  merge_runs(records);
  // Newer records are held back: earlier ones may have come to a ring that was read already.
  const auto newer = std::find_if(records.begin(), records.end(),
                                  [until](const Record& record) { return record.ticks > until; });
  held_.assign(newer, records.end());
  records.erase(newer, records.end());
  return records;
}

int LiveSource::process() const {
  if (!process_) return -1;
  pollfd ended{.fd = process_.value(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) == 0 ? process_.value() : -1;
}

char LiveSource::process_state() const {
  if (process() < 0) return '\0';
  std::ifstream file(fmt::format("/proc/{}/stat", identity().pid));
  std::string text;
  std::getline(file, text);
  // The program's name, in parentheses, may contain any characters.
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

}  // namespace horo::timeline
