// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/nccl/nccl_backend.hpp"

#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "base/deadline.hpp"

namespace horo::runtime {

namespace {

/// A rank that takes longer than the knob `release.timeout` says is killed.
constexpr Duration kDrains = std::chrono::milliseconds(250);
constexpr std::uint64_t kLargeTensor = std::uint64_t{1} << 20U;  ///< Bytes.

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

const void* at(const void* memory, std::uint64_t bytes) {
  return static_cast<const std::byte*>(memory) + bytes;
}

void* at(void* memory, std::uint64_t bytes) {
  return static_cast<std::byte*>(memory) + bytes;
}

/// Elements that this rank receives of a part whose result is of another size on each rank.
std::uint64_t received(const Bucket& bucket, std::size_t part, std::size_t ranks, int position) {
  const auto first = part * ranks;
  const auto each = bucket.parts[part].row_elements;
  std::uint64_t rows = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool own = static_cast<int>(r) == position;
    if (bucket.like.kind == Kind::alltoall) rows += bucket.peers[first + r].received;
    if (bucket.like.kind == Kind::allgather) rows += bucket.rows[first + r];
    if (bucket.like.kind == Kind::reducescatter && own) rows += bucket.rows[first + r];
  }
  return rows * each;
}

}  // namespace

Result<std::unique_ptr<Backend>> NcclBackend::join(const nccl::Library& library, Member member) {
  const auto ids = std::move(member.ids);
  std::unique_ptr<NcclBackend> made(new NcclBackend(library, std::move(member)));
  for (const auto& id : ids) HORO_TRY_STATUS(made->add_lane(id));
  return std::unique_ptr<Backend>(std::move(made));
}

NcclBackend::NcclBackend(const nccl::Library& library, Member member)
    : nccl_(library),
      owned_(std::move(member.owned)),
      gpu_(*member.gpu),
      device_(&member.gpu->device()),
      packs_(member.packs),
      ranks_(member.ranks),
      position_(member.position) {}

Status NcclBackend::add_lane(const nccl::UniqueId& id) {
  Lane lane;
  HORO_TRY(lane.stream, device_->make_urgent_stream());
  lanes_.push_back(lane);
  return nccl_.status(nccl_.comm_init_rank(&lanes_.back().comm, ranks_, id, position_),
                      "ncclCommInitRank");
}

NcclBackend::~NcclBackend() {
  if (flights_.empty() && health_) {
    const EnteredDevice entered(*device_);
    for (auto& lane : lanes_) {
      if (lane.comm != nullptr) nccl_.comm_destroy(std::exchange(lane.comm, nullptr));
    }
  }
  drain();
  free_retired();
  for (const auto& lane : lanes_) {
    if (lane.fusion != nullptr && flights_.empty()) device_->free(lane.fusion);
    device_->destroy_stream(lane.stream);
  }
}

bool NcclBackend::takes(const Signature& like, bool packs) {
  if (nccl::type_of(like.dtype) < 0 || moves_nothing(like.kind)) return false;
  if (!reduces(like.kind)) return true;
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  const bool scales = packs && like.kind == Kind::allreduce && is_float(like.dtype);
  return nccl::op_of(like.op) >= 0 && like.dtype != DType::boolean && (!scaled || scales);
}

Status NcclBackend::check(const Bucket& bucket) const {
  const auto& like = bucket.like;
  if (bucket.device != device_->index()) {
    return fail(Errc::unsupported, "backend 'nccl' moves memory of device {} only, not of {}",
                device_->index(), bucket.device);
  }
  if (takes(like, packs_)) return {};
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  return fail(Errc::unsupported, "backend 'nccl' has no {} of {}{}{}", name(like.kind),
              name(like.dtype), reduces(like.kind) ? fmt::format(" by {}", name(like.op)) : "",
              scaled ? " with scaling" : "");
}

Status NcclBackend::start(Bucket bucket) {
  HORO_TRY_STATUS(check(bucket));
  Flight flight{.event = {}, .outcome = bucket.outcome, .stream = nullptr, .timer = {}};
  HORO_TRY(flight.event, gpu_.event());
  const auto turn = static_cast<std::size_t>(started_ % lanes_.size());
  auto& lane = lanes_[turn];
  flight.stream = lane.stream;
  lane.timer = timer_of(gpu_, bucket.outcome);
  auto status = enqueue(lane, bucket);
  flight.timer = std::exchange(lane.timer, {});
  if (status) status = device_->record(flight.event.get(), lane.stream);
  if (status) gpu_.turns().note(turn, flight.event);
  if (status && flight.outcome != nullptr && flight.outcome->finished != nullptr) {
    status = device_->record(flight.outcome->finished, lane.stream);
    flight.outcome->launched = status.has_value();
  }
  ++started_;
  flights_.push_back(std::move(flight));
  // Some work may be on the stream already, so a failure breaks the backend, not only this bucket.
  if (!status && health_) health_ = status;
  return {};
}

Status NcclBackend::begin_turn() const {
  for (const auto& event : gpu_.turns().begin(this)) {
    for (const auto& lane : lanes_) {
      if (event != nullptr) HORO_TRY_STATUS(device_->wait(lane.stream, event.get()));
    }
  }
  return {};
}

/// The other ranks use their devices for the bucket, so a rank that cannot breaks the set.
Status NcclBackend::check_results(const Bucket& bucket) const {
  for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
    if (bucket.parts[p].out != nullptr ||
        received(bucket, p, static_cast<std::size_t>(ranks_), position_) == 0)
      continue;
    return fail(Errc::out_of_memory, "there is no memory for the result of {}",
                name(bucket.like.kind));
  }
  return {};
}

Status NcclBackend::enqueue(Lane& lane, const Bucket& bucket) {
  const EnteredDevice entered(*device_);
  HORO_TRY_STATUS(entered.status());
  HORO_TRY_STATUS(check_results(bucket));
  HORO_TRY_STATUS(begin_turn());
  for (const auto& part : bucket.parts) {
    if (part.ready != nullptr) HORO_TRY_STATUS(device_->wait(lane.stream, part.ready));
    for (const auto& event : part.before) HORO_TRY_STATUS(device_->wait(lane.stream, event.get()));
  }
  if (bucket.like.kind == Kind::allreduce) return all_reduce(lane, bucket);
  return in_group(lane, bucket);
}

Result<void*> NcclBackend::fusion_memory(Lane& lane, std::uint64_t bytes) {
  if (bytes <= lane.fusion_bytes) return lane.fusion;
  const auto rounded = std::bit_ceil(bytes);
  HORO_TRY(auto* const memory, device_->allocate(rounded));
  if (lane.fusion != nullptr) retired_.push_back(lane.fusion);
  lane.fusion = memory;
  lane.fusion_bytes = rounded;
  return memory;
}

void NcclBackend::free_retired() {
  if (!flights_.empty()) return;
  for (auto* const memory : retired_) device_->free(memory);
  retired_.clear();
}

/// Small tensors are packed; large ones, and all where there are no kernels, move in place in one
/// group. The same on all members.
Status NcclBackend::all_reduce(Lane& lane, const Bucket& bucket) {
  const auto& like = bucket.like;
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  std::uint64_t bytes = 0;
  for (const auto& part : bucket.parts) bytes += part.elements * size_of(like.dtype);
  const bool large = bytes >= kLargeTensor * bucket.parts.size();
  if (scaled || (packs_ && bucket.parts.size() > 1 && !large)) return reduce_packed(lane, bucket);
  return in_group(lane, bucket);
}

Status NcclBackend::reduce_packed(Lane& lane, const Bucket& bucket) {
  const auto& like = bucket.like;
  std::vector<DeviceSpan> in;
  std::vector<DeviceSpan> out;
  std::uint64_t elements = 0;
  for (const auto& part : bucket.parts) {
    in.push_back({const_cast<void*>(part.in), part.elements});
    out.push_back({part.out, part.elements});
    elements += part.elements;
  }
  if (elements == 0) return {};
  // Only floating-point averages can be divided by the kernel that unpacks.
  const bool divides = like.op == ReduceOp::average && is_float(like.dtype);
  const auto op = divides ? ReduceOp::sum : like.op;
  const Conversion on_the_way_in{.from = like.dtype, .to = like.dtype, .scale = like.prescale};
  const Conversion on_the_way_out{
      .from = like.dtype, .to = like.dtype, .scale = like.postscale / (divides ? ranks_ : 1)};
  auto* const packer = device_->packer();
  if (packer == nullptr)
    return fail(Errc::unsupported, "device {} has no kernels to pack tensors", device_->index());
  HORO_TRY(void* const fused, fusion_memory(lane, elements * size_of(like.dtype)));
  lane.timer.enter(timeline::DevicePhase::pack, lane.stream);
  HORO_TRY_STATUS(packer->pack(fused, in, on_the_way_in, lane.stream));
  lane.timer.enter(timeline::DevicePhase::nccl, lane.stream);
  HORO_TRY_STATUS(nccl_.status(nccl_.all_reduce(fused, fused, elements, nccl::type_of(like.dtype),
                                                nccl::op_of(op), lane.comm, lane.stream),
                               "ncclAllReduce"));
  lane.timer.enter(timeline::DevicePhase::unpack, lane.stream);
  HORO_TRY_STATUS(packer->unpack(out, fused, on_the_way_out, lane.stream));
  lane.timer.leave();
  return {};
}

Status NcclBackend::in_group(Lane& lane, const Bucket& bucket) const {
  lane.timer.enter(timeline::DevicePhase::nccl, lane.stream);
  HORO_TRY_STATUS(nccl_.status(nccl_.group_start(), "ncclGroupStart"));
  Status status;
  for (std::size_t p = 0; p < bucket.parts.size() && status; ++p) {
    status = bucket.like.kind == Kind::alltoall ? move_alltoall(lane, bucket, p)
                                                : move_part(lane, bucket, p);
  }
  const auto ended = nccl_.status(nccl_.group_end(), "ncclGroupEnd");
  lane.timer.leave();
  return status ? ended : status;
}

Status NcclBackend::move_part(const Lane& lane, const Bucket& bucket, std::size_t part) const {
  const auto& like = bucket.like;
  const auto& p = bucket.parts[part];
  const int type = nccl::type_of(like.dtype);
  if (like.kind == Kind::allreduce) {
    if (p.elements == 0) return {};
    return nccl_.status(nccl_.all_reduce(p.in, p.out, p.elements, type, nccl::op_of(like.op),
                                         lane.comm, lane.stream),
                        "ncclAllReduce");
  }
  if (like.kind == Kind::broadcast) {
    if (p.elements == 0) return {};
    return nccl_.status(
        nccl_.broadcast(p.in, p.out, p.elements, type, like.root, lane.comm, lane.stream),
        "ncclBroadcast");
  }
  std::uint64_t begin = 0;
  for (int r = 0; r < ranks_; ++r) {
    const auto n = static_cast<std::size_t>(ranks_);
    const auto count = bucket.rows[part * n + static_cast<std::size_t>(r)] * p.row_elements;
    const auto offset = begin * size_of(like.dtype);
    begin += count;
    if (count == 0) continue;
    // Every rank's part has a root of its own: all-gather by broadcasts, reduce-scatter by reduces.
    const auto result =
        like.kind == Kind::allgather
            ? nccl_.broadcast(p.in, at(p.out, offset), count, type, r, lane.comm, lane.stream)
            : nccl_.reduce(at(p.in, offset), p.out, count, type, nccl::op_of(like.op), r, lane.comm,
                           lane.stream);
    HORO_TRY_STATUS(nccl_.status(result, "a collective of NCCL"));
  }
  return {};
}

Status NcclBackend::move_alltoall(const Lane& lane, const Bucket& bucket, std::size_t part) const {
  const auto& p = bucket.parts[part];
  const int type = nccl::type_of(bucket.like.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  const auto element = size_of(bucket.like.dtype);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (std::size_t r = 0; r < n; ++r) {
    const int peer = static_cast<int>(r);
    const auto& rows = bucket.peers[part * n + r];
    const auto to = rows.sent * p.row_elements;
    const auto from = rows.received * p.row_elements;
    if (to != 0) {
      HORO_TRY_STATUS(
          nccl_.status(nccl_.send(at(p.in, sent * element), to, type, peer, lane.comm, lane.stream),
                       "ncclSend"));
    }
    if (from != 0) {
      HORO_TRY_STATUS(nccl_.status(
          nccl_.receive(at(p.out, received * element), from, type, peer, lane.comm, lane.stream),
          "ncclRecv"));
    }
    sent += to;
    received += from;
  }
  return {};
}

bool NcclBackend::progress() {
  bool moved = false;
  gpu_.look_at_clock();
  while (!flights_.empty() && health_) {
    const auto done = device_->done(flights_.front().event.get());
    if (!done) health_ = Failure(done.error());
    if (!done || !*done) break;
    read_times(flights_.front().timer, flights_.front().outcome);
    flights_.pop_front();
    ++completed_;
    moved = true;
  }
  if (!retired_.empty()) free_retired();
  if (health_) health_ = watch();
  return moved;
}

/// There is no limit of time, because devices may be busy with other work as long as it takes.
Status NcclBackend::watch() const {
  if (flights_.empty()) return {};
  nccl::Result error = nccl::kSuccess;
  for (const auto& lane : lanes_) {
    HORO_TRY_STATUS(
        nccl_.status(nccl_.comm_get_async_error(lane.comm, &error), "ncclCommGetAsyncError"));
    HORO_TRY_STATUS(nccl_.status(error, "NCCL"));
  }
  return {};
}

void NcclBackend::abort() {
  for (auto& flight : flights_) {
    auto* const outcome = std::exchange(flight.outcome, nullptr);
    if (outcome == nullptr || outcome->finished == nullptr) continue;
    outcome->abandoned =
        outcome->launched || device_->record(outcome->finished, flight.stream).has_value();
  }
  drain();
}

void NcclBackend::drain() {
  const EnteredDevice entered(*device_);
  for (auto& lane : lanes_) {
    if (lane.comm != nullptr) nccl_.comm_abort(std::exchange(lane.comm, nullptr));
  }
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kDrains);
  while (!flights_.empty()) {
    // An event that was never recorded counts as passed.
    const auto done = device_->done(flights_.front().event.get());
    if (done && !*done) {
      if (deadline.expired(clock.now())) return;  // The device hangs: its memory is never freed.
      std::this_thread::yield();
      continue;
    }
    flights_.pop_front();
  }
}

}  // namespace horo::runtime
