// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.hpp"

#include <utility>

#include "base/log.hpp"
#include "runtime/engine/agreement/local_agreement.hpp"
#include "runtime/engine/spanning_transfers.hpp"

namespace horo::runtime {

namespace {

std::unique_ptr<Agreement> make_agreement(Board& board, OperationTable& operations,
                                          const std::optional<SpanningSet>& spanning) {
  if (spanning) return std::make_unique<SpanningAgreement>(board, *spanning);
  return std::make_unique<LocalAgreement>(board, operations);
}

std::unique_ptr<Transfers> make_transfers(Board& board, Claims& claims, const Agreement& agreement,
                                          Backend& backend,
                                          const std::optional<SpanningSet>& spanning) {
  if (board.leader_port() != nullptr) {
    return std::make_unique<SpanningTransfers>(claims, agreement, backend,
                                               spanning ? spanning->path_reason : WhyPath());
  }
  return std::make_unique<LocalTransfers>(claims, board, backend);
}

}  // namespace

Engine::Engine(Board& board, OperationTable& operations, std::unique_ptr<Backend> backend,
               std::optional<SpanningSet> spanning)
    : board_(board),
      backend_(std::move(backend)),
      agreement_(make_agreement(board, operations, spanning)),
      claims_(board, operations, *agreement_),
      transfers_(make_transfers(board, claims_, *agreement_, *backend_, spanning)),
      runner_(board, operations, claims_, *agreement_, *transfers_, *backend_) {}

/// The backend writes into the entries' outcomes as long as it has their buckets.
Engine::~Engine() {
  if (runner_.uses_device()) abort();
}

bool Engine::progress() {
  bool moved = agreement_->advance();
  moved = begin_entries() || moved;
  if (runner_.active()) {
    // A callback may have run since the last look at the poison, and the loss been acknowledged.
    if (board_.region().host().peer_release().ended()) [[unlikely]]
      return true;
    moved = backend_->progress() || moved;
    moved = runner_.publish_launched() || moved;
    moved = runner_.finish_entries() || moved;
    if (auto health = backend_->health(); !health) [[unlikely]] {
      if (breakdown_) breakdown_ = std::move(health);
      return moved;
    }
  }
  if (board_.region().host().body().gone.load(std::memory_order_seq_cst) != 0) [[unlikely]]
    moved = observe_departures() || moved;
  if (observer_ != nullptr && claims_.health()) [[unlikely]]
    moved = observer_->advance(*agreement_) || moved;
  // Entries that have ended leave room in the log. No other rank may put the tensors that wait for
  // room into an entry: their submitters sleep, and this rank's caller may not be back for long.
  if (moved) agreement_->moved();
  return moved;
}

bool Engine::begin_entries() {
  // Once operations have ended, entries need a rank that has left.
  if (!claims_.health()) return runner_.finish_entries();
  const auto begun = runner_.begin_entries();
  if (!begun) {
    break_board(begun.error());
    return true;
  }
  // Entries that ran at once are done at once; the others wait for the backend.
  return runner_.finish_entries() || *begun;
}

void Engine::observe(EntryObserver* observer) {
  observer_ = observer;
  runner_.observe(observer);
}

void Engine::abort() {
  backend_->abort();
  runner_.abort();
}

bool Engine::observe_departures() {
  const bool active = runner_.active();
  const auto departed =
      agreement_->find_departed(active ? runner_.begun_with_shares() : runner_.begun(), active);
  if (!departed) return false;
  fail_all(departure_of(*departed));
  return true;
}

bool Engine::withdraw() {
  if (health()) agreement_->leave();
  return claims_.withdraw();
}

void Engine::break_board(const Error& error) {
  const auto& region = board_.region();
  log::error("runtime", "{}", error.message);
  poison_board(region.host().board(),
               {.rank = region.global_rank(region.me()), .cause = LossCause::corrupted}, "");
}

}  // namespace horo::runtime
