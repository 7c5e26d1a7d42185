// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/elastic/generation_guard.hpp"

#include <cerrno>
#include <pthread.h>
#include <sys/eventfd.h>
#include <utility>

#include "base/elastic/membership_messages.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime::bootstrap {

namespace {

void poison(const BoardView& board) {
  if (board.local_size() != 0)
    poison_board(board, {.rank = Rank{-1}, .cause = LossCause::given_up}, "");
}

}  // namespace

GenerationGuard::GenerationGuard(kv::Client store, std::string key, UniqueFd stop, UniqueFd over)
    : store_(std::move(store)),
      key_(std::move(key)),
      stop_(std::move(stop)),
      over_(std::move(over)) {
  thread_ = start_quiet_thread([this] { run(); });
}

Result<std::unique_ptr<GenerationGuard>> GenerationGuard::start(kv::Client store,
                                                                std::uint64_t generation) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  UniqueFd over(eventfd(0, EFD_CLOEXEC));
  if (!stop || !over) return fail_errno(errno, "watching the meeting of ranks (eventfd)");
  return std::unique_ptr<GenerationGuard>(new GenerationGuard(
      std::move(store), elastic::over_key(generation), std::move(stop), std::move(over)));
}

GenerationGuard::~GenerationGuard() {
  eventfd_write(stop_.value(), 1);
  thread_.join();
  const MutexLock lock(mutex_);
  unmap_board_header(board_);
}

Status GenerationGuard::protect(int board) {
  HORO_TRY(const auto view, map_board_header(board));
  const MutexLock lock(mutex_);
  unmap_board_header(std::exchange(board_, view));
  if (ended_) poison(board_);
  return {};
}

void GenerationGuard::run() {
  pthread_setname_np(pthread_self(), "horo-meet");
  const auto word = store_.get(key_, {Deadline::never(), stop_.value()});
  if (word || word.error().code != Errc::cancelled) end();
}

void GenerationGuard::end() {
  const MutexLock lock(mutex_);
  ended_ = true;
  eventfd_write(over_.value(), 1);
  poison(board_);
}

}  // namespace horo::runtime::bootstrap
