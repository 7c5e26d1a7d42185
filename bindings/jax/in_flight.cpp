// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/in_flight.hpp"

#include <exception>
#include <string>
#include <utility>

#include "bindings/jax/failures.hpp"

namespace horo::jax {

namespace {

std::string in_words(const std::vector<std::int64_t>& rows) {
  std::string text;
  for (const auto count : rows) text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

/// Whether the rows came from the ranks as the program expects it: `total` rows divided in rank
/// order, of which the first ranks give one more when they do not divide evenly.
bool as_traced(const std::vector<std::int64_t>& rows, std::int64_t total) {
  const auto ranks = static_cast<std::int64_t>(rows.size());
  for (std::int64_t i = 0; i < ranks; ++i) {
    const auto wanted = total / ranks + (i < total % ranks ? 1 : 0);
    if (rows[static_cast<std::size_t>(i)] != wanted) return false;
  }
  return true;
}

/// A result with other rows than the program has room for.
std::optional<CallError> check_rows(const Collective& collective, std::size_t index, horo_op op) {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(collective.ranks));
  const auto status = horo_result(op, &data, &bytes, rows.data());
  if (status != HORO_OK) return last_failure(status);
  const auto& output = *collective.outputs[index];
  const bool in_place = bytes == bytes_of(output) && (bytes == 0 || data == output.data);
  if (in_place && as_traced(rows, output.dims[0])) return std::nullopt;
  return CallError{.code = xla::XlaCode::invalid_argument,
                   .message = "horo: " + collective.name + ": the ranks gave " + in_words(rows) +
                              " rows; inside jit all ranks must give the same number; call " +
                              kind_name(collective.kind) + " outside jit for others"};
}

}  // namespace

const char* kind_name(horo_kind kind) {
  static constexpr const char* kNames[] = {"allreduce",     "allgather", "broadcast", "barrier",
                                           "reducescatter", "alltoall",  "join"};
  return kNames[kind];
}

/// The error of operation `i`, which has ended with `status`; none if it is right.
std::optional<CallError> InFlight::wrong_with(std::size_t i, horo_status status) const {
  const auto kind = collective_.kind;
  if (status != HORO_OK) {
    auto failure = last_failure(status);
    failures().note(status);
    return failure;
  }
  const bool rows = kind == HORO_ALLGATHER || kind == HORO_ALLTOALL;
  return rows ? check_rows(collective_, i, ops_[i]) : std::nullopt;
}

std::optional<CallError> InFlight::finish() {
  std::optional<CallError> first;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const auto status = horo_await(ops_[i], -1);
    try {
      auto failure = wrong_with(i, status);
      if (failure && !first) first = std::move(failure);
    } catch (const std::exception&) {
      // A text so short needs no memory.
      first = CallError{.code = xla::XlaCode::resource_exhausted, .message = "horo: no memory"};
    }
    horo_release(ops_[i]);
  }
  return first;
}

void InFlight::finish_later(Waiters& waiters, const xla::XlaApi& api, xla::Future* future) {
  api_ = &api;
  future_ = future;
  bool waits = false;
  try {
    waits = waiters.run([self = shared_from_this()] { self->complete(); });
  } catch (const std::exception&) {
    waits = false;  // no memory for the task
  }
  if (!waits) follow();
}

void InFlight::complete() {
  const auto failure = finish();
  if (!failure) {
    xla::FutureArguments arguments{
        .size = sizeof(arguments), .extensions = nullptr, .future = future_};
    api_->set_available(&arguments);
    return;
  }
  xla::FutureErrorArguments arguments{.size = sizeof(arguments),
                                      .extensions = nullptr,
                                      .future = future_,
                                      .error = make_error(*api_, *failure)};
  api_->set_error(&arguments);
}

/// Needs no memory and no thread.
void InFlight::follow() {
  const auto self = shared_from_this();
  self_ = self;
  open_ = ops_.size();
  for (const auto op : ops_) {
    // Without the operation there is nothing to wait for; finish() says why.
    if (horo_on_complete(op, followed, this) != HORO_OK) followed(this, op, HORO_OK);
  }
}

void InFlight::followed(void* user, horo_op /*op*/, horo_status /*status*/) {
  auto& one = *static_cast<InFlight*>(user);
  if (one.open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto self = std::move(one.self_);
  self->complete();
}

}  // namespace horo::jax
