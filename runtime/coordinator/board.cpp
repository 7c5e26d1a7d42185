// SPDX-License-Identifier: Apache-2.0
// A set's region and its wake-ups; agreement is in board_cut.cpp, names in board_directory.cpp.
#include "runtime/coordinator/board.hpp"

#include <algorithm>
#include <utility>

#include "timeline/ticks.hpp"

namespace horo::runtime {

Board::Board(HostMemory& host, std::size_t region, Members members, BoardUse use)
    : host_(host),
      region_(region),
      members_(std::move(members)),
      use_(use),
      params_(host.params()),
      cycle_(timeline::ticks_in(Duration(params_.cycle_ns))) {
  const auto mine = std::find(members_.begin(), members_.end(), host.me());
  if (mine != members_.end()) me_ = static_cast<int>(mine - members_.begin());
  params_.local_size = static_cast<std::uint32_t>(members_.size());
  if (use == BoardUse::rings) params_.capacity = kLeastCapacity;
  layout_ = BoardLayout::of(params_, use != BoardUse::agreement);
}

Result<std::unique_ptr<Board>> Board::attach(HostMemory& host, std::size_t region, Members members,
                                             BoardUse use) {
  std::unique_ptr<Board> board(new Board(host, region, std::move(members), use));
  HORO_CHECK(region < kMostRegions && !board->members_.empty() &&
             (board->me_ >= 0 || board->leads()));
  HORO_TRY(std::byte* const base, host.map_region(region));
  board->base_ = base;
  const auto& layout = board->layout_;
  board->ranks_ = reinterpret_cast<RankArea*>(base + layout.ranks);
  board->log_ = reinterpret_cast<LogSlot*>(base + layout.log);
  board->body_ = reinterpret_cast<BoardBody*>(base + layout.body);
  board->buckets_ = reinterpret_cast<std::uint32_t*>(base + layout.buckets);
  board->ready_ = reinterpret_cast<std::atomic<std::uint32_t>*>(base + layout.ready);
  board->pending_ = reinterpret_cast<PendingSlot*>(base + layout.pending);
  board->words_ = reinterpret_cast<std::uint64_t*>(base + layout.words);
  board->tensors_ = reinterpret_cast<TensorSlot*>(base + layout.tensors);
  board->more_members_ = reinterpret_cast<std::atomic<std::uint64_t>*>(base + layout.more_members);
  board->rank_tensors_ = reinterpret_cast<RankTensor*>(base + layout.rank_tensors);
  board->signatures_ = reinterpret_cast<Signature*>(base + layout.signatures);
  HORO_TRY_STATUS(board->meet_layout());
  return board;
}

Status Board::meet_layout() {
  auto& state = host_.body().regions[region_].laid_out;
  std::uint32_t fresh = 0;
  if (state.compare_exchange_strong(fresh, 1, std::memory_order_acq_rel)) {
    auto status = allocate(0, layout_.fixed_bytes()).context("the board of a process set");
    state.store(status ? 2 : 3, std::memory_order_seq_cst);
    futex::wake(state);
    HORO_TRY_STATUS(std::move(status));
  }
  while (state.load(std::memory_order_acquire) == 1) {
    if (poison_of(header()).cause != LossCause::none)
      return fail(Errc::peer_lost, "a rank ended while the board of a process set was made");
    futex::wait(state, 1, std::chrono::milliseconds(100));
  }
  if (state.load(std::memory_order_acquire) != 2) {
    return fail(Errc::out_of_memory,
                "another rank could not get memory for the board of a process set");
  }
  host_.body().regions[region_].users.fetch_add(1, std::memory_order_acq_rel);
  counted_ = true;
  return {};
}

Board::~Board() {
  if (base_ != nullptr) host_.unmap_region(region_, base_, counted_);
}

int Board::member_of(Rank rank) const {
  for (int m = 0; m < local_size(); ++m) {
    if (global_rank(m) == rank) return m;
  }
  return -1;
}

Status Board::allocate(std::uint64_t offset, std::uint64_t bytes) {
  return host_.allocate(host_.layout().regions + region_ * host_.layout().region_bytes + offset,
                        bytes);
}

int Board::wake(std::uint32_t what, Self self) {
  // The caller has published with a seq_cst store; a sleeper announces itself with a seq_cst store
  // to `drive` and then looks again. In their total order one of the two sees the other.
  if (what == interest::kChunks && !any_inside()) return 0;
  int woken = 0;
  for (int r = 0; r < local_size(); ++r) {
    const auto state = host_rank(r).drive.load(std::memory_order_seq_cst);
    if (state == drive::kAwake) continue;
    // Only the thread of its own: a caller who drives and sleeps must hear of it.
    if (state == drive::kNobody && self == Self::spared && r == me_) continue;
    if (state == drive::kAsleep &&
        (host_rank(r).interest.load(std::memory_order_seq_cst) & what) == 0)
      continue;
    if (state == drive::kNobody && (what & interest::kEntries) == 0) continue;
    ring(rank_slot(r));
    ++woken;
  }
  return woken;
}

bool Board::sleeps_inside(int member) const {
  const auto& rank = host_rank(member);
  return rank.drive.load(std::memory_order_seq_cst) == drive::kAsleep &&
         (rank.interest.load(std::memory_order_seq_cst) & interest::kChunks) != 0;
}

int Board::wake_laggards() {
  const auto tail = body_->tail.load(std::memory_order_seq_cst);
  int woken = 0;
  for (int r = 0; r < local_size(); ++r) {
    if (r == me_ || host_rank(r).drive.load(std::memory_order_seq_cst) != drive::kNobody) continue;
    if (ranks_[r].cursor.load(std::memory_order_seq_cst) == tail) continue;
    ring(rank_slot(r));
    ++woken;
  }
  return woken;
}

}  // namespace horo::runtime
