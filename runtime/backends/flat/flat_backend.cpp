// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/flat/flat_backend.hpp"

#include <algorithm>
#include <cstring>
#include <pthread.h>
#include <system_error>

#include "base/signals_blocked.hpp"
#include "runtime/backends/flat/combine.hpp"
#include "runtime/backends/flat/run_schedule.hpp"

namespace horo::runtime {

FlatBackend::FlatBackend(std::unique_ptr<Transport> transport, const Mesh& mesh,
                         FlatOptions options)
    : transport_(std::move(transport)), mesh_(mesh), options_(std::move(options)) {
  for (int l = 0; l < options_.workers; ++l) workers_.push_back(std::make_unique<Worker>());
  try {
    for (std::size_t l = 0; l < workers_.size(); ++l)
      workers_[l]->thread = start_quiet_thread([this, l] { run(*workers_[l], l); });
  } catch (const std::system_error&) {
    abort();  // Ends those that run already.
    throw;
  }
}

FlatBackend::~FlatBackend() {
  abort();
}

Status FlatBackend::start(Bucket bucket) {
  auto job = std::make_shared<Job>();
  HORO_TRY_STATUS(cut_bucket(std::move(bucket), mesh_, options_.segment, options_.name, *job));
  ++started_;
  const MutexLock lock(mutex_);
  job->first = segments_;
  segments_ += job->segments;
  jobs_.push_back(std::move(job));
  while (!jobs_.empty() &&
         jobs_.front()->left == 0) {  // A bucket without elements is complete at once.
    jobs_.pop_front();
    completed_.fetch_add(1, std::memory_order_seq_cst);
  }
  work_.notify_all();
  return {};
}

bool FlatBackend::progress() {
  const auto now = completed();
  return std::exchange(seen_, now) != now;
}

Status FlatBackend::health() const {
  const MutexLock lock(mutex_);
  return health_;
}

void FlatBackend::abort() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    work_.notify_all();
  }
  const bool running = std::any_of(workers_.begin(), workers_.end(),
                                   [](const auto& worker) { return worker->thread.joinable(); });
  if (!running) return;
  bool idle = false;
  {
    const MutexLock lock(mutex_);
    idle = jobs_.empty();
  }
  // With nothing in flight the connections stay: peers may still be receiving what this rank sent.
  if (!idle) transport_->interrupt();
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  if (!idle) transport_->hang_up();
  for (auto& worker : workers_) worker->messages.clear();
  const MutexLock lock(mutex_);
  jobs_.clear();
}

std::shared_ptr<FlatBackend::Job> FlatBackend::job_of(std::uint64_t segment) {
  MutexLock lock(mutex_);
  while (!stopping_ && segments_ <= segment) lock.wait(work_);
  if (stopping_) return nullptr;
  for (auto& job : jobs_) {
    if (segment < job->first + job->segments) return job;
  }
  return nullptr;
}

void FlatBackend::run(Worker& worker, std::uint64_t segment) {
  pthread_setname_np(pthread_self(), "horo-worker");
  while (const auto job = job_of(segment)) {
    if (auto status = run_segment(worker, *job, segment); !status) {
      break_down(std::move(status).error());
      return;
    }
    finish_segment(*job);
    segment += workers_.size();
  }
}

void FlatBackend::finish_segment(Job& job) {
  bool news = false;
  {
    const MutexLock lock(mutex_);
    --job.left;
    while (!jobs_.empty() && jobs_.front()->left == 0) {
      jobs_.pop_front();
      completed_.fetch_add(1, std::memory_order_seq_cst);
      news = true;
    }
  }
  if (news && options_.notify) options_.notify();
}

void FlatBackend::break_down(Error error) {
  {
    const MutexLock lock(mutex_);
    const bool first = !stopping_ && health_.has_value();
    stopping_ = true;
    work_.notify_all();
    if (!first) return;
    health_ = Failure(std::move(error));
  }
  transport_->interrupt();
  transport_->hang_up();
  if (options_.notify) options_.notify();
}

Status FlatBackend::run_segment(Worker& worker, const Job& job, std::uint64_t segment) {
  const auto plan = make_segment(job.bucket, job.lanes, mesh_, job.unit, segment - job.first);
  HORO_TRY_STATUS(worker.memory.provide(plan.schedule.memory));
  if (options_.messages == MessageMemory::tensors) {
    if (const auto place = place_in_result(job, plan))
      return run_in_place(worker, job, plan, segment, *place);
  }
  return run_staged(worker, job, plan, segment);
}

Status FlatBackend::run_staged(Worker& worker, const Job& job, const Segment& piece,
                               std::uint64_t segment) {
  const auto& bucket = job.bucket;
  auto* memory = worker.memory.data();
  for (const auto& stretch : piece.packed) {
    const auto measured = copies_.in();
    pack(bucket, job.lanes, stretch, memory);
    if (piece.schedule.scale_inputs) prescale(job.moved, memory + stretch.offset, stretch.count);
  }
  HORO_TRY_STATUS(move(job, piece, segment, memory));
  const auto measured = copies_.out();
  for (const auto& stretch : piece.unpacked) unpack(bucket, job.lanes, stretch, memory);
  return {};
}

Status FlatBackend::run_in_place(Worker& worker, const Job& job, const Segment& piece,
                                 std::uint64_t segment, const SegmentPlace& place) {
  if (place.in != place.out) {
    const auto measured = copies_.in();
    std::memcpy(place.out, place.in, place.bytes);
  }
  if (piece.schedule.scale_inputs) prescale(job.moved, place.out, piece.packed.front().count);
  return move(job, piece, segment, {place.out, place.bytes, worker.memory.data()});
}

Status FlatBackend::move(const Job& job, const Segment& piece, std::uint64_t segment,
                         const ScheduleMemory& memory) {
  const auto& plan = piece.schedule;
  const auto worker = segment % workers_.size();
  const ScheduleRun one{
      .segment = segment,
      .worker = static_cast<std::uint32_t>(worker),
      .memory = memory,
      .combine = [&](const Combine& sum) { reduce(job, piece, sum, mesh_, memory); }};
  HORO_TRY_STATUS(run_schedule(*transport_, plan, one, workers_[worker]->messages));
  sent_.fetch_add(plan.sent(), std::memory_order_relaxed);
  return {};
}

}  // namespace horo::runtime
