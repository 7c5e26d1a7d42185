// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/mpi/mpi_backend.hpp"

#include <optional>
#include <utility>

#include "runtime/backends/flat/combine.hpp"
#include "runtime/backends/mpi/mpi_tags.hpp"

namespace horo::runtime {

namespace {

constexpr Duration kLooksAwayFor = std::chrono::seconds(1);

struct Native {
  MPI_Datatype type;
  MPI_Op op;
};

/// MPI's own operation where it gives what ours gives: not minima and maxima, whose NaN and signed
/// zeros it leaves open, nor averages of integers, whose sum may overflow.
std::optional<Native> native_of(const Signature& like) {
  if (like.kind != Kind::allreduce) return std::nullopt;
  const bool real = like.dtype == DType::f32 || like.dtype == DType::f64;
  auto op = MPI_SUM;
  switch (like.op) {
    case ReduceOp::sum:
      break;
    case ReduceOp::product:
      op = MPI_PROD;
      break;
    case ReduceOp::average:
      if (!real) return std::nullopt;
      break;
    case ReduceOp::min:
    case ReduceOp::max:
    case ReduceOp::adasum:
      return std::nullopt;
  }
  switch (like.dtype) {
    case DType::f32:
      return Native{MPI_FLOAT, op};
    case DType::f64:
      return Native{MPI_DOUBLE, op};
    case DType::i32:
      return Native{MPI_INT32_T, op};
    case DType::i64:
      return Native{MPI_INT64_T, op};
    case DType::u8:
    case DType::i8:
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
    case DType::boolean:
      break;
  }
  return std::nullopt;
}

Result<bool> all_done(MPI_Request* requests, std::size_t count) {
  int done = 1;
  HORO_TRY_STATUS(mpi_status(
      MPI_Testall(static_cast<int>(count), requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
  return done != 0;
}

}  // namespace

MpiBackend::MpiBackend(MembersComm comm, const Mesh& mesh, MpiOptions options)
    : comm_(std::move(comm)), mesh_(mesh), options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.depth; ++i) idle_.push_back(std::make_unique<Flight>());
}

MpiBackend::~MpiBackend() {
  const bool whole = health_ && jobs_.empty() && flights_.empty() && !aborted_;
  if (!whole) comm_.comm->keep();
  abort();
}

Status MpiBackend::start(Bucket bucket) {
  auto job = std::make_unique<Job>();
  HORO_TRY_STATUS(cut_bucket(std::move(bucket), mesh_, options_.segment, options_.name, *job));
  jobs_.push_back(std::move(job));
  ++started_;
  retire();
  return {};
}

int MpiBackend::peer_of(const Transfer& transfer) const {
  return comm_.shared ? options_.members[static_cast<std::size_t>(transfer.peer)] : transfer.peer;
}

Status MpiBackend::begin(Flight& flight) {
  auto& job = *flight.of;
  const auto& bucket = job.bucket;
  flight.plan = make_segment(bucket, job.lanes, mesh_, job.unit, job.begun);
  // MPI's own operations need a communicator of these members.
  const auto native = mesh_.rank_order || comm_.shared ? std::nullopt : native_of(job.moved);
  flight.native = native.has_value();
  flight.round = flight.received = 0;
  flight.receives.clear();
  flight.sends.clear();
  HORO_TRY_STATUS(flight.memory.provide(flight.plan.schedule.memory));
  auto* memory = flight.memory.data();
  for (const auto& stretch : flight.plan.packed) {
    const auto measured = copies_.in();
    pack(bucket, job.lanes, stretch, memory);
    if (flight.native || flight.plan.schedule.scale_inputs)
      prescale(job.moved, memory + stretch.offset, stretch.count);
  }
  if (flight.native) {
    flight.receives.push_back(MPI_REQUEST_NULL);
    return mpi_status(
        MPI_Iallreduce(MPI_IN_PLACE, memory, static_cast<int>(flight.plan.packed.front().count),
                       native->type, native->op, comm_.comm->get(), flight.receives.data()),
        "MPI_Iallreduce");
  }
  for (const auto& round : flight.plan.schedule.rounds) {
    for (const auto& transfer : round.receives) {
      flight.receives.push_back(MPI_REQUEST_NULL);
      HORO_TRY_STATUS(mpi_status(
          MPI_Irecv(memory + transfer.offset, static_cast<int>(transfer.bytes), MPI_BYTE,
                    peer_of(transfer), tag_of(options_.slot, flight.number, transfer.number),
                    comm_.comm->get(), &flight.receives.back()),
          "MPI_Irecv"));
    }
  }
  return begin_round(flight);
}

Status MpiBackend::begin_round(Flight& flight) {
  const auto& rounds = flight.plan.schedule.rounds;
  if (flight.round == rounds.size()) return {};
  for (const auto& transfer : rounds[flight.round].sends) {
    flight.sends.push_back(MPI_REQUEST_NULL);
    HORO_TRY_STATUS(
        mpi_status(MPI_Isend(flight.memory.data() + transfer.offset,
                             static_cast<int>(transfer.bytes), MPI_BYTE, peer_of(transfer),
                             tag_of(options_.slot, flight.number, transfer.number),
                             comm_.comm->get(), &flight.sends.back()),
                   "MPI_Isend"));
  }
  return {};
}

/// True when the segment has ended.
Result<bool> MpiBackend::advance(Flight& flight) {
  if (flight.native) return all_done(flight.receives.data(), 1);
  const auto& rounds = flight.plan.schedule.rounds;
  while (flight.round < rounds.size()) {
    const auto& round = rounds[flight.round];
    HORO_TRY(const bool here,
             all_done(flight.receives.data() + flight.received, round.receives.size()));
    if (!here) return false;
    flight.received += round.receives.size();
    for (const auto& combine : round.combines)
      reduce(*flight.of, flight.plan, combine, mesh_, flight.memory.data());
    ++flight.round;
    HORO_TRY_STATUS(begin_round(flight));
  }
  return all_done(flight.sends.data(), flight.sends.size());
}

void MpiBackend::finish(Flight& flight) {
  auto& job = *flight.of;
  const auto& like = job.moved;
  const auto measured = copies_.out();
  for (auto stretch : flight.plan.unpacked) {
    if (flight.native) {
      stretch.offset = 0;
      const Combine scale{.sources = {0}, .elements = stretch.count, .stage = Stage::last};
      if (like.op == ReduceOp::average || like.postscale != 1)
        run(scale, like, mesh_.size, flight.memory.data());
    }
    unpack(job.bucket, job.lanes, stretch, flight.memory.data());
  }
  --job.left;
}

bool MpiBackend::may_begin() const {
  return !idle_.empty() &&
         (flights_.empty() || number_ - flights_.front()->number < kMostSegmentsApart);
}

bool MpiBackend::begin_flights() {
  bool any = false;
  for (auto& job : jobs_) {
    while (job->begun < job->segments && may_begin() && health_) {
      flights_.push_back(std::move(idle_.back()));
      idle_.pop_back();
      auto& flight = *flights_.back();
      flight.of = job.get();
      flight.number = number_++;
      health_ = begin(flight);
      ++job->begun;
      any = true;
    }
    if (job->begun < job->segments) break;
  }
  return any;
}

void MpiBackend::retire() {
  while (!jobs_.empty() && jobs_.front()->left == 0) {
    jobs_.pop_front();
    ++completed_;
  }
}

bool MpiBackend::progress() {
  const bool moved = !jobs_.empty() && health_ && may_call_mpi() && move_flights();
  // start() may have retired buckets: that is progress too, and only this call reports it.
  return std::exchange(reported_, completed_) != completed_ || moved;
}

bool MpiBackend::move_flights() {
  bool moved = begin_flights();
  for (std::size_t i = 0; i < flights_.size() && health_;) {
    const auto ended = advance(*flights_[i]);
    if (!ended) {
      health_ = Failure(ended.error());
    } else if (*ended) {
      finish(*flights_[i]);
      idle_.push_back(std::move(flights_[i]));
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
    } else {
      ++i;
    }
  }
  retire();
  if (health_) health_ = watch_the_clock(moved);
  return moved;
}

Status MpiBackend::watch_the_clock(bool moved) {
  const auto now = SteadyClock::instance().now();
  // Time during which progress() was not called does not count against the peers.
  if (moved || now - looked_ > kLooksAwayFor) moved_ = now;
  looked_ = now;
  if (options_.timeout == Duration::zero() || flights_.empty() || now - moved_ < options_.timeout)
    return {};
  std::string silent;
  const auto& flight = *flights_.front();
  if (!flight.native && flight.round < flight.plan.schedule.rounds.size()) {
    for (const auto& transfer : flight.plan.schedule.rounds[flight.round].receives) {
      silent += fmt::format("{}{}", silent.empty() ? "" : ", ",
                            options_.members[static_cast<std::size_t>(transfer.peer)]);
    }
  }
  return fail(Errc::peer_lost, "rank {} is silent over MPI for {} s",
              silent.empty() ? "unknown to MPI" : silent,
              std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count());
}

void MpiBackend::abort() {
  aborted_ = true;
  jobs_.clear();
  if (flights_.empty()) return;
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
  abandon_mpi();
  // Never freed, because MPI may write there until the process ends.
  for (auto& flight : flights_) static_cast<void>(flight.release());
  flights_.clear();
}

}  // namespace horo::runtime
