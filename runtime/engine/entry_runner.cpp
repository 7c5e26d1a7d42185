// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/entry_runner.hpp"

#include <cstring>
#include <utility>

#include "base/race_point.hpp"
#include "runtime/bucket/run_alone.hpp"
#include "runtime/engine/operations/recording.hpp"

namespace horo::runtime {

EntryRunner::EntryRunner(Board& board, OperationTable& operations, Claims& claims,
                         Agreement& agreement, Transfers& transfers, Backend& backend)
    : board_(board),
      operations_(operations),
      claims_(claims),
      agreement_(agreement),
      transfers_(transfers),
      backend_(backend),
      builder_(board, operations, claims, agreement, transfers),
      payloads_(board, claims) {}

Result<bool> EntryRunner::begin_entries() {
  bool any = false;
  for (;;) {
    HORO_TRY(const bool may, transfers_.may_begin());
    if (!may) break;
    HORO_TRY(const auto entry, board_.log().read(begun_, words_));
    if (!entry) break;
    any = true;
    HORO_TRY(const bool prepared, transfers_.prepare(*entry));
    if (prepared) {
      HORO_TRY_STATUS(begin(*entry));
      begun_public_.store(++begun_, std::memory_order_relaxed);
      if (entry->kind != EntryKind::tuning) begun_with_shares_ = begun_;
    }
    publish_activity();
  }
  return any;
}

Status EntryRunner::list_tensors(const Entry& entry, Started& started) {
  for (const auto raw : entry.ids) {
    const TensorId id{static_cast<std::uint32_t>(raw)};
    if (claims_.has_submitted(id)) {
      started.ids.push_back(id);
    } else if (claims_.has_joined()) {
      claims_.forget_agreement(id);
    } else {
      return fail(Errc::protocol,
                  "log entry {} of the board names tensor {} that this rank has not submitted",
                  begun_, raw);
    }
  }
  return {};
}

Status EntryRunner::begin(const Entry& entry) {
  auto& started = started_.emplace_back();
  started.ids = std::exchange(spare_ids_, {});
  const auto status = begin_in_place(entry, started);
  if (!status) started_.pop_back();
  return status;
}

Status EntryRunner::begin_in_place(const Entry& entry, Started& started) {
  HORO_TRY_STATUS(list_tensors(entry, started));
  if (observer_ != nullptr && (entry.kind == EntryKind::join || !entry.signatures.empty()))
      [[unlikely]]
    observer_->disturbed();
  switch (entry.kind) {
    case EntryKind::work:
      HORO_TRY_STATUS(begin_work(entry, started));
      break;
    case EntryKind::join:
      HORO_TRY_STATUS(begin_join(entry, started));
      break;
    case EntryKind::mismatch:
      end_mismatch(entry, started);
      break;
    case EntryKind::left:
      // The first rank that left is the reason; ranks that leave later do so because of it.
      if (left_.value() < 0) left_ = entry.left;
      break;
    case EntryKind::tuning:
      record_tuned(board_.recorded_set(), board_.tuning().value(), entry.tuning);
      board_.apply(entry.tuning);
      if (observer_ != nullptr) observer_->changed(entry.tuning);
      break;
  }
  return {};
}

BucketMover EntryRunner::mover_of(const Entry& entry, const Bucket& bucket) const {
  if (entry.path == DataPath::carried) return {.reason = timeline::PathReason::carried};
  if (entry.path != DataPath::direct && entry.path != DataPath::staged) return {};
  return {.mover = timeline::mover_of(backend_.caps().name),
          .reason = transfers_.path_reason(bucket)};
}

Status EntryRunner::begin_work(const Entry& entry, Started& started) {
  HORO_TRY(auto made, builder_.make(entry, begun_));
  auto& bucket = made.bucket;
  count(bucket);
  record_begun(board_.recorded_set(), begun_, entry, bucket, mover_of(entry, bucket));
  started.neutral = std::move(made.neutral);
  started.bytes = entry.bytes;
  started.path = entry.path;
  if (bucket.like.memory == MemoryKind::device) [[unlikely]]
    prepare_device(started, bucket);
  switch (entry.path) {
    case DataPath::alone:
      run_alone(bucket);
      builder_.take_back(std::move(bucket));
      break;
    case DataPath::in_marks:
      HORO_TRY_STATUS(payloads_.run_in_marks(bucket));
      builder_.take_back(std::move(bucket));
      break;
    case DataPath::carried:
      HORO_TRY_STATUS(payloads_.run_carried(bucket, entry.inputs, agreement_.size()));
      builder_.take_back(std::move(bucket));
      break;
    case DataPath::direct:
    case DataPath::staged:
      HORO_TRY(started.ticket, transfers_.start(std::move(bucket)));
      break;
  }
  return {};
}

void EntryRunner::prepare_device(Started& started, Bucket& bucket) {
  started.device = std::make_unique<OnDevice>();
  ++on_device_;
  bucket.outcome = &started.device->outcome;
  if (timeline::Recorder::wants_device_times() && bucket.device >= 0) [[unlikely]] {
    started.device->times.device = bucket.device;
    bucket.outcome->times = &started.device->times;
  }
  for (const auto id : started.ids) {
    const auto* const operation = claims_.operation_of(id);
    if (operation == nullptr) continue;
    // Without an event only the host can wait for the entry.
    if (auto event = operation->on_device.gpu->event(); event) {
      started.device->finished = std::move(*event);
      bucket.outcome->finished = started.device->finished.get();
    }
    return;
  }
}

bool EntryRunner::publish_launched() {
  if (on_device_ == 0) [[likely]]
    return false;
  bool any = false;
  for (auto& entry : started_) {
    if (entry.device == nullptr || entry.device->published || !entry.device->outcome.launched)
      continue;
    entry.device->published = any = true;
    for (const auto id : entry.ids) {
      auto* const operation = claims_.operation_of(id);
      if (operation == nullptr) continue;
      operation->on_device.finished = entry.device->finished;
      // A result without memory is an error, which only the end of the operation tells.
      if (operation->on_device.error) operation->launch();
    }
  }
  return any;
}

Error EntryRunner::end_of(const OnDevice& device, const Operation* operation) {
  if (!device.outcome.error) return device.outcome.error.error();
  if (operation != nullptr && !operation->on_device.error)
    return operation->on_device.error.error();
  return {};
}

Status EntryRunner::begin_join(const Entry& entry, const Started& started) {
  const auto last = static_cast<std::int32_t>(entry.last_joined.value());
  for (const auto id : started.ids) {
    auto* const in_flight = claims_.operation_of(id);
    if (in_flight == nullptr) continue;  // The loss of a rank has ended it.
    auto& operation = *in_flight;
    operation.memory = operations_.results().take(sizeof last);
    if (operation.memory == nullptr) return fail(Errc::out_of_memory, "no memory for a join");
    operation.result = operation.memory.get();
    operation.result_bytes = sizeof last;
    std::memcpy(operation.result, &last, sizeof last);
  }
  claims_.end_join();
  return {};
}

void EntryRunner::end_mismatch(const Entry& entry, Started& started) {
  const auto report = mismatch_report_of(entry.text);
  for (const auto id : started.ids) {
    claims_.end_loan(id, DataPath::alone);
    record_mismatch(board_.recorded_set(), id);
    claims_.complete(id, fail(Errc::mismatch, "{}", report.text)
                             .with({.subject = report.subject,
                                    .tensor = std::string(board_.region().tensor_name(id))})
                             .take());
  }
  started.ids.clear();
}

bool EntryRunner::is_done(const Started& entry) const {
  return entry.ticket <= backend_.completed() ||
         (entry.ticket == kSeveralBuckets && transfers_.several_done());
}

void EntryRunner::finish_first() {
  static const Error none;
  auto ids = std::move(started_.front().ids);
  const auto device = std::move(started_.front().device);
  const auto path = started_.front().path;
  if (observer_ != nullptr) [[unlikely]]
    observer_->finished(ids, started_.front().bytes);
  started_.pop_front();
  publish_activity();
  record_copied(board_.recorded_set(), cursor_, backend_.copied(), copied_);
  if (device != nullptr) [[unlikely]]
    record_device_times(board_.recorded_set(), cursor_, device->times);
  record_ended(board_.recorded_set(), cursor_);
  board_.log().advance(++cursor_);
  for (const auto id : ids) {
    claims_.end_loan(id, path);
    if (device == nullptr) [[likely]] {
      claims_.complete(id, none);
    } else {
      claims_.complete(id, end_of(*device, claims_.operation_of(id)));
    }
  }
  if (device != nullptr) --on_device_;
  ids.clear();
  spare_ids_ = std::move(ids);
}

void EntryRunner::end_after_departure() {
  if (left_.value() < 0 || !started_.empty()) return;
  claims_.fail_all(departure_of(std::exchange(left_, Rank{-1})));
}

bool EntryRunner::finish_entries() {
  bool any = false;
  while (!started_.empty() && is_done(started_.front())) {
    race_point();
    finish_first();
    end_after_departure();
    any = true;
  }
  if (any) agreement_.entries_done();
  return any;
}

std::uint64_t EntryRunner::bytes_in_flight() const {
  std::uint64_t sum = 0;
  for (const auto& entry : started_) sum += entry.bytes;
  return sum;
}

void EntryRunner::keep_ends() const {
  for (const auto& entry : started_) {
    if (entry.device == nullptr || !entry.device->outcome.abandoned) continue;
    for (const auto id : entry.ids) {
      if (auto* const operation = claims_.operation_of(id); operation != nullptr)
        operation->on_device.abandoned = entry.device->finished;
    }
  }
}

void EntryRunner::abort() {
  keep_ends();
  started_.clear();
  on_device_ = 0;
  transfers_.abort();
  publish_activity();
}

void EntryRunner::publish_activity() {
  const auto active = started_.size() + (transfers_.preparing() ? 1 : 0);
  active_public_.store(static_cast<std::uint32_t>(active), std::memory_order_relaxed);
}

void EntryRunner::count(const Bucket& bucket) {
  std::uint64_t bytes = 0, copied = 0;
  for (const auto& part : bucket.parts) {
    const auto size =
        moves_nothing(bucket.like.kind) ? 0 : part.elements * size_of(bucket.like.dtype);
    bytes += size;
    if (claims_.has_submitted(part.id) && claims_.tensor(part.id).lent != nullptr) copied += size;
  }
  // Only the holder of the progress token writes them, so no locked instruction is needed.
  const auto add = [](std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(counters_.entries, 1);
  add(counters_.tensors, bucket.parts.size());
  add(counters_.bytes, bytes);
  if (bucket.parts.size() > 1) add(counters_.fused_bytes, bytes);
  if (bucket.path == DataPath::direct) add(counters_.direct_bytes, bytes - copied);
  // Nothing is rounded among ranks that share a host.
  const bool crosses_hosts = board_.leader_port() != nullptr;
  if (crosses_hosts && bucket.like.wire != WireDType::none) add(counters_.rounded_bytes, bytes);
}

}  // namespace horo::runtime
