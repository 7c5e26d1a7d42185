// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/adasum/spanning_adasum.hpp"

#include <algorithm>
#include <new>

#include "base/race_point.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kAnyRoom = std::uint64_t{1} << 40U;  // Products of a level travel at once.

Signature like_of(Kind kind, DType dtype) {
  Signature like;
  like.kind = kind;
  like.dtype = dtype;
  return like;
}

}  // namespace

SpanningAdasum::SpanningAdasum(Bucket bucket, int size, int position)
    : bucket_(std::move(bucket)),
      size_(size),
      position_(position),
      run_(bucket_.like, bucket_.parts.size(), size, 1, kAnyRoom) {}

std::uint64_t SpanningAdasum::slice_of(std::size_t part, int rank) const {
  return adasum_slice(bucket_.parts[part].elements, size_, rank).count;
}

std::byte* SpanningAdasum::slice(std::size_t part, int rank) {
  const auto bytes = slice_of(part, position_) * size_of(bucket_.like.dtype);
  return slices_.data() + offsets_[part] + static_cast<std::uint64_t>(rank) * bytes;
}

Status SpanningAdasum::start(Backend& backend, Bucket bucket) {
  HORO_TRY_STATUS(backend.start(std::move(bucket)));
  ticket_ = backend.started();
  race_point();
  return {};
}

Result<bool> SpanningAdasum::advance(Backend& backend) {
  // A bucket may be complete as soon as it is started. Nobody rings for such a bucket, so the next
  // one starts here and not at the next look.
  while (backend.completed() >= ticket_) {
    if (phase_ == Phase::results) return true;
    HORO_TRY_STATUS(start_next(backend));
  }
  return false;
}

Status SpanningAdasum::start_next(Backend& backend) {
  if (phase_ == Phase::start) {
    phase_ = Phase::slices;
    return send_slices(backend);
  }
  if (phase_ == Phase::products) take_products();
  const bool last = run_.last_pass(run_.stage_of(step_));
  phase_ = last ? Phase::results : Phase::products;
  return last ? share_results(backend) : share_products(backend);
}

Status SpanningAdasum::send_slices(Backend& backend) {
  std::uint64_t bytes = 0;
  for (std::size_t p = 0; p < bucket_.parts.size(); ++p) {
    offsets_.push_back(bytes);
    bytes += slice_of(p, position_) * size_of(bucket_.like.dtype) *
             (static_cast<std::uint64_t>(size_) + 1);
  }
  try {
    slices_.resize(bytes);
  } catch (const std::bad_alloc&) {
    return fail(Errc::out_of_memory, "{} bytes for an Adasum between hosts cannot be allocated",
                bytes);
  }
  Bucket bucket;
  bucket.like = like_of(Kind::alltoall, bucket_.like.dtype);
  for (std::size_t p = 0; p < bucket_.parts.size(); ++p) {
    const auto& part = bucket_.parts[p];
    bucket.parts.push_back({.id = part.id,
                            .in = part.in,
                            .out = slice(p, 0),
                            .elements = part.elements,
                            .row_elements = 1});
    for (int r = 0; r < size_; ++r)
      bucket.peers.push_back({.sent = slice_of(p, r), .received = slice_of(p, position_)});
  }
  for (int r = 0; r < size_; ++r) {
    std::uint64_t sent = 0;
    for (std::size_t p = 0; p < bucket_.parts.size(); ++p) sent += slice_of(p, r);
    bucket.longest = std::max(bucket.longest, sent);
  }
  return start(backend, std::move(bucket));
}

Status SpanningAdasum::share_products(Backend& backend) {
  std::vector<const void*> inputs(static_cast<std::size_t>(size_));
  for (std::size_t p = 0; p < bucket_.parts.size(); ++p) {
    for (int r = 0; r < size_; ++r) inputs[static_cast<std::size_t>(r)] = slice(p, r);
    run_.add(run_.stage_of(step_), p, inputs.data(), slice_of(p, position_));
  }
  ++step_;
  const auto own = run_.products(run_.stage_of(step_));
  products_.assign(own.begin(), own.end());
  all_products_.resize(products_.size() * static_cast<std::size_t>(size_));
  const auto doubles = products_.size() * sizeof(AdasumDots) / sizeof(double);
  Bucket bucket;
  bucket.like = like_of(Kind::allgather, DType::f64);
  bucket.parts.push_back({.in = products_.data(),
                          .out = all_products_.data(),
                          .elements = doubles,
                          .row_elements = doubles});
  bucket.rows.assign(static_cast<std::size_t>(size_), 1);
  return start(backend, std::move(bucket));
}

void SpanningAdasum::take_products() {
  const auto stage = run_.stage_of(step_++);
  const std::span<const AdasumDots> all(all_products_);
  for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r)
    run_.take(stage, all.subspan(r * products_.size(), products_.size()));
  run_.finish(stage);
}

Status SpanningAdasum::share_results(Backend& backend) {
  Bucket bucket;
  bucket.like = like_of(Kind::allgather, bucket_.like.dtype);
  std::vector<const void*> inputs(static_cast<std::size_t>(size_));
  for (std::size_t p = 0; p < bucket_.parts.size(); ++p) {
    for (int r = 0; r < size_; ++r) inputs[static_cast<std::size_t>(r)] = slice(p, r);
    const auto mine = slice_of(p, position_);
    void* const result = slice(p, size_);
    kernels::weighted_sum_kernel(bucket_.like.dtype)(
        &result, 1, {.src = inputs.data(), .weights = run_.weights(p), .n = size_}, mine);
    bucket.parts.push_back({.id = bucket_.parts[p].id,
                            .in = result,
                            .out = bucket_.parts[p].out,
                            .elements = mine,
                            .row_elements = 1});
    for (int r = 0; r < size_; ++r) bucket.rows.push_back(slice_of(p, r));
  }
  return start(backend, std::move(bucket));
}

}  // namespace horo::runtime
