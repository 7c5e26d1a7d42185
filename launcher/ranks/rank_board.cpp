// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_board.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

bool in_use(RankState state) {
  return state == RankState::attached || state == RankState::leaving;
}

}  // namespace

Result<std::unique_ptr<RankBoard>> RankBoard::make(const AgentSpec& spec) {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
    return fail_errno(errno, "drawing the board's nonce");
  HORO_TRY(const int made, make_board({.local_size = spec.places(),
                                       .nonce = nonce,
                                       .epoch = spec.epoch,
                                       .secret = spec.secret}));
  UniqueFd fd(made);
  // The same number as in the ranks: a rank that has lost its descriptor finds this one in /proc.
  if (dup3(made, kBoardDescriptor, O_CLOEXEC) < 0) {
    const int error = errno;
    if (error == EBADF) {
      return fail(Errc::unavailable, "the limit of descriptors is below {}; raise ulimit -Hn",
                  kBoardDescriptor + 1);
    }
    return fail_errno(error, "giving the board its descriptor");
  }
  HORO_TRY(const auto board, map_board_header(fd.value()));
  return std::unique_ptr<RankBoard>(new RankBoard(std::move(fd), board, nonce));
}

RankBoard::~RankBoard() {
  unmap_board_header(board_);
}

bool RankBoard::in_use_by(LocalRank rank) const {
  return in_use(board_->slot(rank).state.load(std::memory_order_acquire));
}

bool RankBoard::joined_by(LocalRank rank) const {
  const auto state = board_->slot(rank).state.load(std::memory_order_acquire);
  return in_use(state) || state == RankState::detached;
}

bool RankBoard::lacks_ack(LocalRank rank) const {
  // Whoever poisons looks here afterwards, and a rank that takes its acknowledgement back looks at
  // the poison afterwards (PeerRelease): one total order, so that one of them sees the other.
  return in_use_by(rank) && board_->slot(rank).poison_ack.load(std::memory_order_seq_cst) == 0;
}

RankBoard::Membership RankBoard::mark_ended(LocalRank rank) {
  auto& slot = board_->slot(rank);
  auto& state = slot.state;
  auto last = state.load(std::memory_order_seq_cst);
  // A detached rank stays detached: peers that have not looked yet end the operations that wait
  // for it.
  while (last != RankState::detached &&
         !state.compare_exchange_weak(last, RankState::dead, std::memory_order_seq_cst)) {
  }
  if (last == RankState::absent) ring_all(board_);  // Its peers may be waiting for it to attach.
  const auto heard = static_cast<int>(slot.heard.load(std::memory_order_seq_cst));
  return {.joined = in_use(last) || last == RankState::detached,
          .in_use = in_use(last),
          .heard = Rank{std::max(heard, 0) - 1}};
}

void RankBoard::reset(LocalRank rank) {
  auto& slot = board_->slot(rank);
  slot.pid.store(0);
  slot.poison_ack.store(0);
  slot.kill_sent.store(0);
  slot.heard.store(0);
  // A killed process has left its sleepers counted, and rings would be meant for them.
  slot.bell.callers.store(0);
  slot.bell.runtime_threads.store(0);
  slot.state.store(RankState::absent);
}

}  // namespace horo::launcher
