// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dialled_rank.hpp"

#include <utility>

namespace horo::launcher {

void DialledRank::connected(std::unique_ptr<RankLink> link) {
  link_ = std::move(link);
  state_ = State::connected;
}

void DialledRank::started(TimePoint now) {
  state_ = State::started;
  started_at_ = now;
}

void DialledRank::ended() {
  state_ = State::ended;
}

void DialledRank::agent_gone() {
  switch (state_) {
    case State::connected:
      state_ = State::lost_unstarted;
      break;
    case State::started:
      state_ = State::lost_started;
      break;
    case State::ended:
      state_ = State::finished;
      break;
    case State::awaited:
    case State::finished:
    case State::lost_unstarted:
    case State::lost_started:
      break;
  }
}

bool DialledRank::is_over() const {
  return state_ == State::finished || state_ == State::lost_unstarted ||
         state_ == State::lost_started;
}

bool DialledRank::never_ran() const {
  return state_ == State::awaited || state_ == State::connected || state_ == State::lost_unstarted;
}

void DialledRank::send(const protocol::Message& message) {
  if (link_) link_->send(message);
}

}  // namespace horo::launcher
