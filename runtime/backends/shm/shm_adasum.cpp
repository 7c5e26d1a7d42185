// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/shm/shm_adasum.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/backends/shm/shm_mover.hpp"

namespace horo::runtime {

AdasumRun::AdasumRun(const Signature& like, std::size_t parts, int ranks, std::uint64_t data_steps,
                     std::uint64_t room)
    : dtype_(like.dtype),
      scale_(like.prescale * like.postscale),
      parts_(parts),
      ranks_(static_cast<std::size_t>(ranks)),
      data_steps_(data_steps),
      per_step_(room / sizeof(AdasumDots)),
      levels_(adasum_tree(ranks)),
      weights_(parts * ranks_, 1.0) {
  for (const auto& pairs : levels_) {
    exchange_steps_.push_back((parts_ * pairs.size() + per_step_ - 1) / per_step_);
    steps_ += data_steps_ + exchange_steps_.back();
  }
  steps_ += data_steps_;
  begin_level(0);
}

void AdasumRun::begin_level(std::size_t level) {
  const auto products = level < levels_.size() ? parts_ * levels_[level].size() : 0;
  states_.assign(products, {});
  own_.clear();
  sums_.assign(products, {});
}

AdasumRun::Stage AdasumRun::stage_of(std::uint64_t step) const {
  Stage stage;
  for (; stage.pass < levels_.size(); ++stage.pass) {
    stage.step = step - stage.begin;
    if (stage.step < data_steps_) return stage;
    stage.step -= data_steps_;
    if (stage.step < exchange_steps_[stage.pass]) {
      stage.exchange = true;
      return stage;
    }
    stage.begin += data_steps_ + exchange_steps_[stage.pass];
  }
  stage.step = step - stage.begin;
  return stage;
}

void AdasumRun::add(const Stage& stage, std::size_t part, const void* const* inputs,
                    std::uint64_t count) {
  const auto& pairs = levels_[stage.pass];
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    add_dots(pairs[p], dtype_, inputs, {weights(part), ranks_}, count,
             states_[part * pairs.size() + p]);
  }
}

std::span<const AdasumDots> AdasumRun::products(const Stage& stage) {
  if (own_.empty()) {
    for (const auto& state : states_) own_.emplace_back(state);
  }
  const auto first = first_product(stage);
  return std::span<const AdasumDots>(own_).subspan(first, std::min(per_step_, own_.size() - first));
}

void AdasumRun::take(const Stage& stage, std::span<const AdasumDots> products) {
  for (std::size_t i = 0; i < products.size(); ++i) sums_[first_product(stage) + i] += products[i];
}

void AdasumRun::finish(const Stage& stage) {
  if (stage.step + 1 < exchange_steps_[stage.pass]) return;
  const auto& pairs = levels_[stage.pass];
  for (std::size_t part = 0; part < parts_; ++part) {
    const std::span<double> weights(weights_.data() + part * ranks_, ranks_);
    for (std::size_t p = 0; p < pairs.size(); ++p)
      combine(pairs[p], sums_[part * pairs.size() + p], weights);
  }
  begin_level(stage.pass + 1);
  if (stage.pass + 1 == levels_.size()) {
    for (auto& weight : weights_) weight *= scale_;
  }
}

bool ShmMover::adasum_step(ShmBucket& a, std::uint64_t step) {
  auto& run = *a.adasum;
  const auto stage = run.stage_of(step);
  auto* const result = rings_.result(me_, a.first_step + step);
  if (stage.exchange) {
    const auto products = run.products(stage);
    std::memcpy(result, products.data(), products.size_bytes());
    return true;
  }
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  const bool adds_up = run.last_pass(stage);
  const auto chunk =
      a.chunk_of_lane(static_cast<std::size_t>(me_), a.direct() ? a.piece : stage.step);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    for (std::size_t r = 0; r < n; ++r) {
      const int rank = static_cast<int>(r);
      if (a.direct()) {
        sources_[r] = a.peer_in[piece.part * n + r] + piece.in * element;
        targets_[r] = a.peer_out[piece.part * n + r] + piece.in * element;
      } else {
        sources_[r] = rank == me_
                          ? static_cast<const std::byte*>(part.in) + piece.in * element
                          : rings_.input(rank, a.first_step + step, me_) + piece.in_chunk * element;
      }
    }
    if (!adds_up) return run.add(stage, piece.part, sources_.data(), piece.count);
    const auto to_ring = ring_writer_.preferred();
    const bool around = !a.direct() && to_ring != kernels::copy_kernel();
    auto* const slot = result + piece.in_chunk * element;
    if (!a.direct()) {
      targets_[0] = static_cast<std::byte*>(part.out) + piece.in * element;
      targets_[1] = slot;
    }
    kernels::weighted_sum_kernel(a.what.dtype)(
        targets_.data(), a.direct() ? ranks_ : (around ? 1 : 2),
        {.src = sources_.data(), .weights = run.weights(piece.part), .n = ranks_}, piece.count);
    if (around) to_ring(slot, targets_[0], piece.count * element);
  });
  if (a.direct() && ++a.piece < a.pieces) return false;
  a.piece = 0;
  return true;
}

void ShmMover::adasum_out(ShmBucket& a, std::uint64_t step) {
  auto& run = *a.adasum;
  const auto stage = run.stage_of(step);
  if (stage.exchange) {
    const auto own = run.products(stage);
    for (int r = 0; r < ranks_; ++r) {
      const auto* theirs =
          reinterpret_cast<const AdasumDots*>(rings_.result(r, a.first_step + step));
      run.take(stage, {theirs, own.size()});
    }
    run.finish(stage);
  } else if (run.last_pass(stage) && !a.direct()) {
    copy_out(a, step);
  }
}

}  // namespace horo::runtime
