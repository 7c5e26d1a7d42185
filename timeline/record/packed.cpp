// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/packed.hpp"

#include <algorithm>

namespace horo::timeline {

std::size_t SubmitReader::read(std::span<const std::uint64_t> words, std::vector<Record>& to) {
  std::size_t senseless = 0;
  for (const auto word : words) {
    if ((word & SubmitWord::kBase) != 0) {
      base_ = word & ~SubmitWord::kBase;
      known_ = true;
    } else if (known_) {
      to.push_back({.ticks = base_ + (word >> 40U) * SubmitWord::kTicks,
                    .kind = RecordKind::submit,
                    .set = static_cast<std::uint16_t>(word >> 24U),
                    .id = static_cast<std::uint32_t>(word % SubmitWord::kMostId)});
    } else {
      ++senseless;
    }
  }
  return senseless;
}

void unpack(const Record& from, std::vector<Record>& to) {
  if (from.kind != kMemberRow) return to.push_back(from);
  const std::uint32_t step = from.x == 1 ? ~0U : 1U;
  const auto count = std::min<std::uint32_t>(from.detail, kMostInRow);
  for (std::uint32_t i = 0; i < count; i += kMembersPerRecord) {
    const auto at = [&](std::uint32_t k) -> std::uint32_t {
      return i + k < count ? from.id + (i + k) * step : 0;
    };
    to.push_back(encode_members({at(0), at(1), at(2), at(3), at(4)},
                                std::min<std::size_t>(kMembersPerRecord, count - i), from.set,
                                from.ticks));
  }
}

}  // namespace horo::timeline
