// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/shm/shm_backend.hpp"

#include <algorithm>
#include <utility>

#include "base/race_point.hpp"

namespace horo::runtime {

ShmBackend::ShmBackend(const SetRegion& region)
    : rings_(region), me_(region.me()), ranks_(region.local_size()) {}

Status ShmBackend::start(Bucket bucket) {
  auto a = make_shm_bucket(std::move(bucket), rings_);
  if (a.in_steps()) {
    a.first_step = next_step_;
    next_step_ += a.steps;
  } else if (a.chained) {
    a.first_step = next_piece_;
    next_piece_ += a.steps;
  } else {
    a.first_step = next_direct_++;
  }
  if (a.direct()) {
    auto found = find_peers(a, rings_);
    // Without this rank's help its peers may be done by now, and their buffers freed or moved.
    if (!found && !(a.is_shared() && finished(a))) return found;
  }
  active_.push_back(std::move(a));
  ++started_;
  race_point();
  retire();
  return {};
}

bool ShmBackend::peers_reached(Count count, std::uint64_t least) {
  // Noted even when reached: the noted value depends on this rank's own steps alone, so it is still
  // right when the last look before a sleep finds the others further on, but not far enough.
  auto& awaited = awaited_[static_cast<std::size_t>(count)];
  awaited = std::min(awaited, least);
  return rings_.others_reached(me_, count, least);
}

void ShmBackend::publish_awaited() {
  for (std::size_t i = 0; i < kCounts; ++i) rings_.await(static_cast<Count>(i), awaited_[i]);
  rings_.await_result(awaited_result_);
}

void ShmBackend::announce(Count count, std::uint64_t value) {
  wakes_ += static_cast<std::uint64_t>(rings_.announce(count, value));
}

bool ShmBackend::finished(const ShmBucket& a) {
  if (a.is_shared()) {
    const auto& done = rings_.reduced_in_place(a.first_step % kSharedPlaces);
    return done.count(a.round()) == a.steps * static_cast<std::uint64_t>(ranks_);
  }
  if (!a.in_steps() && !a.chained)
    return a.out == 1 && peers_reached(Count::direct_done, a.first_step + 1);
  return a.out == a.steps;
}

void ShmBackend::retire() {
  while (!active_.empty() && finished(active_.front())) {
    active_.pop_front();
    ++completed_;
  }
}

bool ShmBackend::has_completed() {
  return std::exchange(reported_, completed_) != completed_;
}

bool ShmBackend::progress() {
  if (active_.empty()) return has_completed();
  awaited_.fill(kNotAwaited);
  awaited_result_ = kNotAwaited;
  // Results first: the data copied in last is still in cache, and the rings drain.
  bool moved = step_out();
  moved = step_reduce() || moved;
  moved = step_in() || moved;
  moved = step_direct() || moved;
  moved = step_chain_out() || moved;
  moved = step_chain() || moved;
  retire();
  moved = has_completed() || moved;
  if (!moved) publish_awaited();
  return moved;
}

bool ShmBackend::step_in() {
  for (auto& a : active_) {
    if (!a.in_steps() || a.in == a.steps) continue;
    const auto step = a.first_step + a.in;
    const auto slots = rings_.slots();
    if (step >= slots && !peers_reached(Count::reduced, step - slots + 1)) return false;
    if (!a.publishes() && !a.direct()) mover_.copy_in(a, a.in);
    ++a.in;
    announce(Count::copied_in, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_reduce() {
  for (auto& a : active_) {
    if (!a.in_steps() || a.reduced == a.steps) continue;
    const auto step = a.first_step + a.reduced;
    const auto slots = rings_.slots();
    if (a.reduced == a.in) return false;  // Copy in first: a rank's counters keep their order.
    const bool room = step < slots || peers_reached(Count::copied_out, step - slots + 1);
    const bool filled = a.publishes() || peers_reached(Count::copied_in, step + 1);
    if (!room || !filled) return false;
    // A pass of an Adasum needs the weights that the pass before it produced.
    if (a.adasum && a.out < a.adasum->stage_of(a.reduced).begin) return false;
    switch (a.bucket.like.kind) {
      case Kind::allreduce:
      case Kind::reducescatter:
        if (!a.adasum) {
          mover_.reduce(a, a.reduced);
        } else if (!mover_.adasum_step(a, a.reduced)) {
          return true;
        }
        break;
      case Kind::alltoall:
        mover_.collect(a, a.reduced);
        break;
      case Kind::allgather:
      case Kind::broadcast:
      case Kind::barrier:
      case Kind::join:
        mover_.publish(a, a.reduced);
        break;
    }
    ++a.reduced;
    announce(Count::reduced, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_out() {
  for (auto& a : active_) {
    if (!a.in_steps() || a.out == a.steps) continue;
    const auto step = a.first_step + a.out;
    if (a.out == a.reduced) return false;
    if (!a.collects()) {
      if (!peers_reached(Count::reduced, step + 1)) return false;
      a.adasum ? mover_.adasum_out(a, a.out) : mover_.copy_out(a, a.out);
    }
    ++a.out;
    announce(Count::copied_out, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_direct() {
  for (auto& a : active_) {
    if (a.in_steps() || a.chained) continue;
    if (a.out == 1) continue;  // This rank has done its part.
    if (a.is_shared()) {
      if (const auto chunk = take_chunk(a)) {
        mover_.reduce_direct(a, *chunk);
        ++a.in;
      } else {
        a.out = 1;
        report_reduced(a);
      }
      return true;
    }
    if (a.in < a.steps) {
      if (reduces(a.bucket.like.kind)) {
        mover_.reduce_direct(a, a.part_for(a.in, me_));
      } else {
        mover_.copy_direct(a, a.in);
      }
      ++a.in;
    }
    if (a.in == a.steps) {
      a.out = 1;
      announce(Count::direct_done, a.first_step + 1);
    }
    return true;
  }
  return false;
}

std::optional<ShmChunk> ShmBackend::take_chunk(ShmBucket& a) {
  const auto place = a.first_step % kSharedPlaces;
  const auto most = static_cast<std::uint32_t>(a.steps);
  for (; a.helped < ranks_; ++a.helped) {
    const int owner = (me_ + a.helped) % ranks_;
    const auto next = rings_.taken(owner, place).take(a.round(), most);
    if (next != most) return a.chunk_of_lane(0, static_cast<std::uint64_t>(owner) * a.steps + next);
  }
  return std::nullopt;
}

void ShmBackend::report_reduced(ShmBucket& a) {
  auto& done = rings_.reduced_in_place(a.first_step % kSharedPlaces);
  const auto sum = done.add(a.round(), static_cast<std::uint32_t>(a.in));
  if (a.in != 0 && sum == a.steps * static_cast<std::uint64_t>(ranks_))
    wakes_ += static_cast<std::uint64_t>(rings_.wake_inside());
}

bool ShmBackend::may_chain(std::uint64_t piece) {
  if (me_ != 0) {
    auto& awaited = awaited_[static_cast<std::size_t>(Count::chained)];
    awaited = std::min(awaited, piece + 1);
    return rings_.predecessor_reached(piece + 1);
  }
  const auto slots = rings_.chain_slots();
  if (piece < slots + chain_freed_) return true;
  chain_freed_ = rings_.least_chained_out();
  auto& awaited = awaited_[static_cast<std::size_t>(Count::chained_out)];
  awaited = std::min(awaited, piece - slots + 1);
  return piece < slots + chain_freed_;
}

bool ShmBackend::step_chain() {
  for (auto& a : active_) {
    if (!a.chained || a.in == a.steps) continue;
    // Several pieces between two rings: the next rank then finds enough to do while this one goes
    // on. Results are wanted by all ranks, which should find many when they are woken.
    const auto share = me_ + 1 == ranks_ ? 1U : 2U;
    const auto most = std::max<std::uint64_t>(1, std::min(a.steps, rings_.chain_slots()) / share);
    const auto before = a.in;
    while (a.in < a.steps && a.in < before + most && may_chain(a.first_step + a.in)) {
      mover_.chain_in(a, a.in);
      ++a.in;
      rings_.count_chained(a.first_step + a.in);
    }
    if (a.in == before) return false;
    race_point();
    wakes_ += static_cast<std::uint64_t>(rings_.wake_successors());
    return true;
  }
  return false;
}

bool ShmBackend::step_chain_out() {
  for (auto& a : active_) {
    if (!a.chained || a.out == a.steps) continue;
    const auto before = a.out;
    while (a.out < a.in && a.out < before + rings_.chain_slots()) {
      const auto least = a.first_step + a.out + 1;
      awaited_result_ = std::min(awaited_result_, least);
      if (!rings_.result_reached(least)) break;
      mover_.chain_out(a, a.out);
      ++a.out;
    }
    if (a.out == before) return false;
    wakes_ += static_cast<std::uint64_t>(rings_.announce_chained_out(a.first_step + a.out));
    return true;
  }
  return false;
}

void ShmBackend::abort() {
  active_.clear();
}

}  // namespace horo::runtime
