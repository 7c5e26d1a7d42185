// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/nccl/nccl_backend.hpp"

#include <cstring>
#include <thread>
#include <utility>

namespace horo::runtime {

namespace {

constexpr Duration kLooksAwayFor = std::chrono::seconds(1);
constexpr Duration kDrains = std::chrono::seconds(1);

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

Result<nccl::UniqueId> agree_on_id(const Communicator& c, const nccl::Library& library) {
  const auto deadline = Deadline::in(SteadyClock::instance(), c.start_timeout);
  const auto key = c.name + "/nccl";
  nccl::UniqueId id;
  if (c.position == 0) {
    HORO_TRY_STATUS(library.status(library.get_unique_id(&id), "ncclGetUniqueId"));
    if (c.size() == 1) return id;
    HORO_TRY_STATUS(c.meeting->set(key, {id.bytes.data(), id.bytes.size()}, deadline));
    return id;
  }
  HORO_TRY(const auto text, c.meeting->get(key, deadline));
  if (text.size() != id.bytes.size())
    return fail(Errc::protocol, "'{}' has {} bytes and is not an NCCL id", key, text.size());
  std::memcpy(id.bytes.data(), text.data(), text.size());
  return id;
}

const void* at(const void* memory, std::uint64_t bytes) {
  return static_cast<const std::byte*>(memory) + bytes;
}

void* at(void* memory, std::uint64_t bytes) {
  return static_cast<std::byte*>(memory) + bytes;
}

}  // namespace

Result<std::unique_ptr<Backend>> NcclBackend::make(const Communicator& communicator,
                                                   std::unique_ptr<Device> device) {
  HORO_TRY_STATUS(runtime::check(communicator));
  HORO_TRY(const auto* library, nccl::load());
  HORO_TRY(const auto id, agree_on_id(communicator, *library));
  HORO_TRY(const auto stream, device->make_stream());
  nccl::Comm comm = nullptr;
  const auto joined = library->status(
      library->comm_init_rank(&comm, communicator.size(), id, communicator.position),
      "ncclCommInitRank");
  if (!joined) {
    device->destroy_stream(stream);
    return Failure(joined.error());
  }
  std::unique_ptr<NcclBackend> backend(
      new NcclBackend(*library, std::move(device), comm, communicator));
  backend->stream_ = stream;
  return std::unique_ptr<Backend>(std::move(backend));
}

NcclBackend::NcclBackend(const nccl::Library& library, std::unique_ptr<Device> device,
                         nccl::Comm comm, const Communicator& communicator)
    : nccl_(library),
      device_(std::move(device)),
      position_(communicator.position),
      ranks_(communicator.size()),
      timeout_(communicator.timeout),
      comm_(comm) {}

NcclBackend::~NcclBackend() {
  if (flights_.empty() && health_ && comm_ != nullptr) {
    nccl_.comm_destroy(std::exchange(comm_, nullptr));
  }
  abort();
  device_->destroy_stream(stream_);
}

Status NcclBackend::check(const Bucket& bucket) const {
  const auto& like = bucket.like;
  if (bucket.device != device_->index()) {
    return fail(Errc::unsupported, "backend 'nccl' moves memory of device {} only, not of {}",
                device_->index(), bucket.device);
  }
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  const bool no_kernel = scaled && !(like.kind == Kind::allreduce && is_float(like.dtype));
  const bool reducing = reduces(like.kind);
  if (nccl::type_of(like.dtype) < 0 || (reducing && nccl::op_of(like.op) < 0) ||
      (reducing && (no_kernel || like.dtype == DType::boolean)) || like.kind == Kind::barrier) {
    return fail(Errc::unsupported, "backend 'nccl' has no {} of {}{}{}", name(like.kind),
                name(like.dtype), reducing ? fmt::format(" by {}", name(like.op)) : "",
                scaled ? " with scaling" : "");
  }
  return {};
}

Status NcclBackend::start(Bucket bucket) {
  HORO_TRY_STATUS(check(bucket));
  Flight flight;
  HORO_TRY(flight.event, device_->make_event());
  auto status = enqueue(bucket, flight);
  if (status) status = device_->record(flight.event, stream_);
  ++started_;
  flights_.push_back(flight);
  // Some work may be on the stream already, so a failure breaks the backend, not only this bucket.
  if (!status && health_) health_ = status;
  return {};
}

Status NcclBackend::enqueue(const Bucket& bucket, Flight& flight) {
  for (const auto& part : bucket.parts) {
    if (part.ready != nullptr) HORO_TRY_STATUS(device_->wait(stream_, part.ready));
  }
  if (bucket.like.kind == Kind::allreduce) return all_reduce(bucket, flight);
  return in_group(bucket);
}

Status NcclBackend::all_reduce(const Bucket& bucket, Flight& flight) {
  const auto& like = bucket.like;
  const int type = nccl::type_of(like.dtype);
  const bool plain = like.prescale == 1 && like.postscale == 1;
  if (bucket.parts.size() == 1 && plain) {
    const auto& part = bucket.parts.front();
    return nccl_.status(nccl_.all_reduce(part.in, part.out, part.elements, type,
                                         nccl::op_of(like.op), comm_, stream_),
                        "ncclAllReduce");
  }
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
  if (device_->packer() == nullptr)
    return fail(Errc::unsupported, "device {} has no kernels to pack tensors", device_->index());
  HORO_TRY(flight.fused, device_->allocate(elements * size_of(like.dtype)));
  HORO_TRY_STATUS(device_->packer()->pack(flight.fused, in, on_the_way_in, stream_));
  HORO_TRY_STATUS(nccl_.status(
      nccl_.all_reduce(flight.fused, flight.fused, elements, type, nccl::op_of(op), comm_, stream_),
      "ncclAllReduce"));
  return device_->packer()->unpack(out, flight.fused, on_the_way_out, stream_);
}

Status NcclBackend::in_group(const Bucket& bucket) {
  HORO_TRY_STATUS(nccl_.status(nccl_.group_start(), "ncclGroupStart"));
  Status status;
  for (std::size_t p = 0; p < bucket.parts.size() && status; ++p) {
    status = bucket.like.kind == Kind::alltoall ? move_alltoall(bucket, p) : move_part(bucket, p);
  }
  const auto ended = nccl_.status(nccl_.group_end(), "ncclGroupEnd");
  return status ? ended : status;
}

Status NcclBackend::move_part(const Bucket& bucket, std::size_t part) {
  const auto& like = bucket.like;
  const auto& p = bucket.parts[part];
  const int type = nccl::type_of(like.dtype);
  if (like.kind == Kind::broadcast) {
    return nccl_.status(nccl_.broadcast(p.in, p.out, p.elements, type, like.root, comm_, stream_),
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
            ? nccl_.broadcast(p.in, at(p.out, offset), count, type, r, comm_, stream_)
            : nccl_.reduce(at(p.in, offset), p.out, count, type, nccl::op_of(like.op), r, comm_,
                           stream_);
    HORO_TRY_STATUS(nccl_.status(result, "a collective of NCCL"));
  }
  return {};
}

Status NcclBackend::move_alltoall(const Bucket& bucket, std::size_t part) {
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
      HORO_TRY_STATUS(nccl_.status(
          nccl_.send(at(p.in, sent * element), to, type, peer, comm_, stream_), "ncclSend"));
    }
    if (from != 0) {
      HORO_TRY_STATUS(nccl_.status(
          nccl_.receive(at(p.out, received * element), from, type, peer, comm_, stream_),
          "ncclRecv"));
    }
    sent += to;
    received += from;
  }
  return {};
}

void NcclBackend::finish(Flight& flight) {
  device_->destroy_event(flight.event);
  if (flight.fused != nullptr) device_->free(flight.fused);
}

bool NcclBackend::progress() {
  bool moved = false;
  while (!flights_.empty() && health_) {
    const auto done = device_->done(flights_.front().event);
    if (!done) health_ = Failure(done.error());
    if (!done || !*done) break;
    finish(flights_.front());
    flights_.pop_front();
    ++completed_;
    moved = true;
  }
  if (health_) health_ = watch(moved);
  return moved;
}

Status NcclBackend::watch(bool moved) {
  const auto now = SteadyClock::instance().now();
  if (moved || flights_.empty() || now - looked_ > kLooksAwayFor) moved_ = now;
  looked_ = now;
  if (flights_.empty()) return {};
  nccl::Result error = nccl::kSuccess;
  HORO_TRY_STATUS(nccl_.status(nccl_.comm_get_async_error(comm_, &error), "ncclCommGetAsyncError"));
  HORO_TRY_STATUS(nccl_.status(error, "NCCL"));
  if (timeout_ == Duration::zero() || now - moved_ < timeout_) return {};
  return fail(Errc::peer_lost, "a rank unknown to NCCL is silent for {} s",
              std::chrono::duration_cast<std::chrono::seconds>(timeout_).count());
}

void NcclBackend::abort() {
  if (comm_ == nullptr) return;
  nccl_.comm_abort(std::exchange(comm_, nullptr));
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kDrains);
  for (auto& flight : flights_) {
    // An event that was never recorded counts as passed.
    for (auto done = device_->done(flight.event); done && !*done && !deadline.expired(clock.now());
         done = device_->done(flight.event))
      std::this_thread::yield();
    finish(flight);
  }
  flights_.clear();
}

}  // namespace horo::runtime
