// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/board.hpp"

#include <utility>

namespace horo::runtime {

Result<std::unique_ptr<Board>> Board::attach(HostMemory& host, std::size_t region, Members members,
                                             BoardSpan span) {
  const auto use = span == BoardSpan::one_host ? RegionUse::whole : RegionUse::agreement;
  HORO_TRY(auto mapped, SetRegion::attach(host, region, std::move(members), use));
  return std::unique_ptr<Board>(new Board(std::move(mapped), span));
}

Board::Board(std::unique_ptr<SetRegion> region, BoardSpan span)
    : region_(std::move(region)),
      bells_(*region_),
      directory_(*region_),
      ready_(*region_),
      marks_(*region_, directory_, ready_),
      log_(*region_, marks_,
           span == BoardSpan::one_host ? EntryLog::Rows::one_per_member : EntryLog::Rows::unknown),
      places_(*region_, log_),
      stalls_(*region_, directory_, marks_,
              span == BoardSpan::one_host ? StallView::CompletedBy::cutter
                                          : StallView::CompletedBy::other_hosts),
      tuning_(region_->params().tuning) {
  if (span == BoardSpan::one_host) {
    cutter_.emplace(*region_, directory_, marks_, ready_, log_, places_, tuning_);
  } else {
    leader_port_.emplace(*region_, directory_, marks_, ready_, log_, places_, bells_);
  }
}

}  // namespace horo::runtime
