// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_board.hpp"

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
  HORO_TRY(const int made, make_board({.local_size = static_cast<int>(spec.ranks.size()),
                                       .nonce = nonce,
                                       .epoch = spec.epoch,
                                       .secret = spec.secret}));
  const UniqueFd first(made);
  // The same number as in the ranks, so that one that has lost its own finds ours under /proc.
  UniqueFd fd(dup3(made, kBoardDescriptor, O_CLOEXEC));
  if (!fd) {
    const int error = errno;
    if (error == EBADF) {
      return fail(Errc::unavailable, "the limit of descriptors is below {}; raise ulimit -Hn",
                  kBoardDescriptor + 1);
    }
    return fail_errno(error, "giving the board its descriptor");
  }
  HORO_TRY(auto* header, map_board_header(fd.value()));
  return std::unique_ptr<RankBoard>(new RankBoard(std::move(fd), header, nonce));
}

RankBoard::~RankBoard() {
  unmap_board_header(header_);
}

bool RankBoard::in_use_by(LocalRank rank) const {
  return in_use(header_->slot(rank).state.load(std::memory_order_acquire));
}

bool RankBoard::joined_by(LocalRank rank) const {
  const auto state = header_->slot(rank).state.load(std::memory_order_acquire);
  return in_use(state) || state == RankState::detached;
}

bool RankBoard::lacks_ack(LocalRank rank) const {
  return in_use_by(rank) && header_->slot(rank).poison_ack.load(std::memory_order_acquire) == 0;
}

RankBoard::Membership RankBoard::bury(LocalRank rank) {
  auto& slot = header_->slot(rank);
  auto& state = slot.state;
  auto last = state.load(std::memory_order_seq_cst);
  // Who has left stays so: its peers may not have looked yet, and end what lacks it then.
  while (last != RankState::detached &&
         !state.compare_exchange_weak(last, RankState::dead, std::memory_order_seq_cst)) {
  }
  const auto heard = static_cast<int>(slot.heard.load(std::memory_order_seq_cst));
  return {.joined = in_use(last) || last == RankState::detached,
          .in_use = in_use(last),
          .heard = Rank{std::max(heard, 0) - 1}};
}

}  // namespace horo::launcher
