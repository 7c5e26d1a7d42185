// SPDX-License-Identifier: Apache-2.0
// The C ABI: checks arguments, converts, and keeps exceptions and forked children out.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/version.hpp"
#include "horo/horo.h"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/capi_support.hpp"
#include "runtime/session.hpp"

namespace {

using horo::Deadline;
using horo::Duration;
using horo::Errc;
using horo::Result;
using horo::SetId;
using horo::Status;
using horo::SteadyClock;
using horo::TensorId;
using horo::WorkerIdentity;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::Operation;
using horo::runtime::ReduceOp;
using horo::runtime::Session;
using horo::runtime::SetSubmission;
using horo::runtime::Signature;
using horo::runtime::TensorHandle;
using horo::runtime::capi::last_error;
using horo::runtime::capi::Process;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

/// A rank that ends without horo_shutdown but with exit() leaves in good order.
void leave_process() {
  horo_shutdown();
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(p.life);
  p.bootstrap.retire();
}

Status start_session(Process& p) {
  static const bool once = [] {
    pthread_atfork(nullptr, nullptr,
                   [] { process().forked.store(true, std::memory_order_relaxed); });
    return std::atexit(leave_process) == 0;
  }();
  static_cast<void>(once);
  HORO_TRY(const auto options, horo::runtime::capi::read_options());
  p.owner.reset();
  p.session.store(nullptr, std::memory_order_release);
  HORO_TRY(auto meeting,
           p.bootstrap.meet([](const char* name) -> const char* { return std::getenv(name); },
                            Deadline::in(SteadyClock::instance(), options.start_timeout)));
  horo::runtime::start_recording(options.recording, meeting.identity);
  HORO_TRY(p.owner, Session::join(std::move(meeting), options));
  p.unnamed.store(0, std::memory_order_relaxed);
  p.session.store(p.owner.get(), std::memory_order_release);
  p.joined.store(true, std::memory_order_release);
  return {};
}

int identity_number(int (*read)(const WorkerIdentity&)) {
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed) || !p.joined.load(std::memory_order_acquire))
    return -1;
  return read(p.session.load(std::memory_order_acquire)->identity());
}

// Sizes of the structures in the first release of the ABI: no caller knows less.
constexpr std::size_t kFirstTensorDesc = offsetof(horo_tensor_desc, postscale) + sizeof(double);
constexpr std::size_t kFirstSubmission =
    offsetof(horo_submission, split_count) + sizeof(std::size_t);
constexpr std::size_t kFirstCounters = offsetof(horo_counters, wakes) + sizeof(std::uint64_t);

/// A caller's structure with the fields that its version lacks as in `initial`. A caller of a later
/// version may set no field that this library does not know.
template <typename T>
Result<T> known_fields(const T* given, std::size_t least, T initial) {
  if (given == nullptr || given->size < least)
    return horo::fail(Errc::invalid_argument, "not given, or its size is not set");
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof(T)), bytes + given->size,
                  [](unsigned char byte) { return byte != 0; })) {
    return horo::fail(Errc::unsupported,
                      "fields beyond byte {} are not known to libhoro {}; use a newer library",
                      sizeof(T), horo::version());
  }
  std::memcpy(&initial, given, std::min(given->size, sizeof(T)));
  return initial;
}

Result<Signature> to_signature(const horo_tensor_desc& desc, int size) {
  Signature s;
  if (desc.kind < HORO_ALLREDUCE || desc.kind > HORO_JOIN) {
    return horo::fail(Errc::invalid_argument, "kind {} is none of HORO_ALLREDUCE ... HORO_JOIN",
                      static_cast<int>(desc.kind));
  }
  s.kind = static_cast<Kind>(desc.kind);
  if (horo::runtime::moves_nothing(s.kind)) {
    s.elements = 0;
    return s;
  }
  if (!horo::runtime::is_dtype(desc.dtype)) {
    return horo::fail(Errc::invalid_argument, "dtype {} is not known",
                      static_cast<int>(desc.dtype));
  }
  s.dtype = static_cast<DType>(desc.dtype);
  if (desc.ndim < 0 || (desc.ndim > 0 && desc.shape == nullptr)) {
    return horo::fail(Errc::invalid_argument, "ndim {} without a shape", desc.ndim);
  }
  HORO_TRY_STATUS(set_shape(s, {desc.shape, static_cast<std::size_t>(desc.ndim)}));
  switch (s.kind) {
    case Kind::allreduce:
    case Kind::reducescatter:
      if (!horo::runtime::is_reduce_op(desc.op)) {
        return horo::fail(Errc::invalid_argument, "reduce op {} is not known",
                          static_cast<int>(desc.op));
      }
      s.op = static_cast<ReduceOp>(desc.op);
      s.prescale = desc.prescale;
      s.postscale = desc.postscale;
      break;
    case Kind::broadcast:
      if (desc.root_rank < 0 || desc.root_rank >= size) {
        return horo::fail(Errc::invalid_argument, "root rank {}; allowed are 0 to {}",
                          desc.root_rank, size - 1);
      }
      s.root = desc.root_rank;
      break;
    case Kind::allgather:
    case Kind::alltoall:
    case Kind::barrier:
    case Kind::join:
      break;
  }
  HORO_TRY_STATUS(check_supported(s));
  return s;
}

constexpr const char* kJoinName = "horo.join";

// A handle: the set, then what tells a name from those that had its slot before, then the slot.
constexpr int kSlotBits = 20;
constexpr int kIncarnationBits = 32;

horo_tensor to_handle(SetId set, TensorHandle tensor) {
  return std::uint64_t{set.value()} << (kSlotBits + kIncarnationBits) |
         std::uint64_t{tensor.incarnation} << kSlotBits | tensor.id.value();
}

std::pair<SetId, TensorHandle> from_handle(horo_tensor tensor) {
  return {SetId{static_cast<std::uint32_t>(tensor >> (kSlotBits + kIncarnationBits))},
          TensorHandle{TensorId{static_cast<std::uint32_t>(tensor & ((1U << kSlotBits) - 1))},
                       static_cast<std::uint32_t>(tensor >> kSlotBits)}};
}

Result<Operation*> find(Session& session, horo_op op) {
  Operation* operation = session.operations().find(op);
  if (operation == nullptr)
    return horo::fail(Errc::not_found, "operation {} does not exist or was released", op);
  return operation;
}

/// The end of an operation as a status, with its message as this thread's last error.
horo_status outcome(const Operation& operation) {
  if (operation.status() != Errc::ok) last_error = operation.message();
  return static_cast<horo_status>(operation.status());
}

Deadline deadline_in(int64_t timeout_ms) {
  if (timeout_ms < 0) return Deadline::never();
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;
  return Deadline::in(SteadyClock::instance(),
                      std::chrono::milliseconds(std::min(timeout_ms, kYear)));
}

horo_status submit(Session& session, const SetSubmission& s, horo_op* op) {
  if (op == nullptr)
    return report(horo::fail(Errc::invalid_argument, "no place for the operation"));
  auto operation = session.submit(s.set, s.tensor, s.given);
  if (!operation) return report(operation.error());
  *op = (*operation)->handle();
  return HORO_OK;
}

Result<SetSubmission> known_submission(const horo_submission* given) {
  HORO_TRY(const auto known, known_fields(given, kFirstSubmission, HORO_SUBMISSION_INIT));
  if (known.split_count != 0 && known.splits == nullptr)
    return horo::fail(Errc::invalid_argument, "{} splits, but no place", known.split_count);
  const auto [set, tensor] = from_handle(known.tensor);
  return SetSubmission{
      .set = set,
      .tensor = tensor,
      .given = {.in = known.in,
                .out = known.out,
                .room = known.out_bytes,
                .splits = {known.splits, known.splits != nullptr ? known.split_count : 0}}};
}

horo_status wait_one(Session& session, horo_op op, const Deadline& deadline) {
  auto operation = find(session, op);
  if (!operation) return report(operation.error());
  if (!session.wait(**operation, deadline)) return HORO_IN_PROGRESS;
  const auto status = outcome(**operation);
  // A result belongs to the caller until horo_release.
  if (!(*operation)->keeps_result || status != HORO_OK) session.operations().put(**operation);
  return status;
}

}  // namespace

extern "C" {

HORO_API horo_status horo_init(void) {
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed)) {
    return report(horo::fail(Errc::forked,
                             "this process was forked from the one that called horo_init; start it "
                             "afresh (spawn) to use horo"));
  }
  const std::lock_guard lock(p.life);
  if (p.joined.load(std::memory_order_relaxed)) return HORO_OK;
  try {
    return report(start_session(p));
  } catch (const std::bad_alloc&) {
    return report(horo::fail(Errc::out_of_memory, "no memory to initialise"));
  }
}

HORO_API horo_status horo_shutdown(void) {
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed)) return HORO_OK;
  const std::lock_guard lock(p.life);
  if (!p.joined.exchange(false)) return HORO_OK;
  p.owner->shutdown();
  horo::runtime::stop_recording();
  return HORO_OK;
}

HORO_API int horo_is_initialized(void) {
  const auto& p = process();
  return p.joined.load(std::memory_order_acquire) && !p.forked.load(std::memory_order_relaxed) ? 1
                                                                                               : 0;
}

HORO_API int horo_rank(void) {
  return identity_number([](const WorkerIdentity& w) { return w.rank.value(); });
}

HORO_API int horo_size(void) {
  return identity_number([](const WorkerIdentity& w) { return w.size; });
}

HORO_API int horo_local_rank(void) {
  return identity_number([](const WorkerIdentity& w) { return w.local_rank.value(); });
}

HORO_API int horo_local_size(void) {
  return identity_number([](const WorkerIdentity& w) { return w.local_size; });
}

HORO_API int horo_cross_rank(void) {
  return identity_number([](const WorkerIdentity& w) { return w.cross_rank; });
}

HORO_API int horo_cross_size(void) {
  return identity_number([](const WorkerIdentity& w) { return w.cross_size; });
}

HORO_API const char* horo_version(void) {
  return horo::version().data();
}

HORO_API int horo_abi_version(void) {
  return HORO_ABI_VERSION;
}

HORO_API const char* horo_last_error(void) {
  return last_error.c_str();
}

HORO_API const char* horo_status_name(horo_status status) {
  return horo::name(static_cast<Errc>(status)).data();
}

HORO_API horo_status horo_declare(const horo_tensor_desc* given, horo_tensor* tensor) {
  return with_session([&](Session& session) {
    auto desc = known_fields(given, kFirstTensorDesc, HORO_TENSOR_DESC_INIT);
    if (!desc) return report(std::move(desc).error().context("horo_declare: horo_tensor_desc"));
    if (tensor == nullptr)
      return report(horo::fail(Errc::invalid_argument, "horo_declare: no place for the tensor"));
    const SetId set{desc->process_set};
    auto signature = to_signature(*desc, session.identity().size);
    if (!signature) {
      return report(std::move(signature).error().context(
          fmt::format("tensor '{}'", desc->name != nullptr ? desc->name : "(unnamed)")));
    }
    // A set has one join: whoever calls it calls the same.
    const auto name =
        signature->kind == Kind::join ? std::string(kJoinName)
        : desc->name != nullptr
            ? std::string(desc->name)
            : fmt::format("unnamed.{}", process().unnamed.fetch_add(1, std::memory_order_relaxed));
    const horo::runtime::GroupName group{desc->group != nullptr ? desc->group : "",
                                         desc->group_size};
    auto id = session.declare(set, name, *signature, group);
    if (!id) return report(id.error());
    *tensor = to_handle(set, *id);
    return HORO_OK;
  });
}

HORO_API horo_status horo_submit(horo_tensor tensor, const void* in, void* out, horo_op* op) {
  return with_session([&](Session& session) {
    const auto [set, id] = from_handle(tensor);
    return submit(session, {.set = set, .tensor = id, .given = {.in = in, .out = out}}, op);
  });
}

HORO_API horo_status horo_submit_with(const horo_submission* submission, horo_op* op) {
  return with_session([&](Session& session) {
    auto known = known_submission(submission);
    if (!known) return report(std::move(known).error().context("horo_submit_with"));
    return submit(session, *known, op);
  });
}

HORO_API horo_status horo_submit_all(const horo_submission* submissions, size_t n, horo_op* ops) {
  return with_session([&](Session& session) {
    if (n != 0 && (submissions == nullptr || ops == nullptr))
      return report(horo::fail(Errc::invalid_argument, "no submissions, or no place for them"));
    std::vector<SetSubmission> all;
    for (size_t i = 0; i < n; ++i) {
      // Of one caller: its structures are of one size.
      const auto* at = reinterpret_cast<const std::byte*>(submissions) + i * submissions->size;
      auto known = known_submission(reinterpret_cast<const horo_submission*>(at));
      if (!known) return report(std::move(known).error().context("horo_submit_all"));
      all.push_back(*known);
    }
    std::vector<Operation*> operations;
    if (auto status = session.submit_all(all, operations); !status) return report(status);
    for (size_t i = 0; i < n; ++i) ops[i] = operations[i]->handle();
    return HORO_OK;
  });
}

HORO_API horo_status horo_submit_many(const horo_tensor* tensors, const void* const* in,
                                      void* const* out, size_t n, horo_op* ops, size_t* submitted) {
  if (submitted != nullptr) *submitted = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto status = horo_submit(tensors[i], in[i], out != nullptr ? out[i] : nullptr, &ops[i]);
    if (status != HORO_OK) return status;
    if (submitted != nullptr) *submitted = i + 1;
  }
  return HORO_OK;
}

HORO_API horo_status horo_poll(horo_op op) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    if (!(*operation)->done()) session.poke();
    return (*operation)->done() ? outcome(**operation) : HORO_IN_PROGRESS;
  });
}

HORO_API horo_status horo_wait(horo_op op, int64_t timeout_ms) {
  return with_session(
      [&](Session& session) { return wait_one(session, op, deadline_in(timeout_ms)); });
}

HORO_API horo_status horo_wait_all(const horo_op* ops, size_t n, int64_t timeout_ms) {
  return with_session([&](Session& session) {
    const auto deadline = deadline_in(timeout_ms);
    // Nothing is released before all are complete, so that a time-out can be waited out again.
    std::vector<Operation*> operations;
    for (size_t i = 0; i < n; ++i) {
      auto operation = find(session, ops[i]);
      if (!operation) return report(operation.error());
      operations.push_back(*operation);
    }
    if (!session.wait(operations, deadline)) return HORO_IN_PROGRESS;
    horo_status first = HORO_OK;
    std::string message;
    for (size_t i = 0; i < n; ++i) {
      const auto status = wait_one(session, ops[i], deadline);
      if (first == HORO_OK && status != HORO_OK) {
        first = status;
        message = last_error;
      }
    }
    if (first != HORO_OK) last_error = message;
    return first;
  });
}

HORO_API horo_status horo_result(horo_op op, const void** data, size_t* bytes, int64_t* rows) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    const auto& o = **operation;
    if (!o.done()) {
      return report(
          horo::fail(Errc::in_progress, "operation {} has not completed; wait for it first", op));
    }
    if (o.status() != Errc::ok) return outcome(o);
    if (!o.keeps_result) {
      return report(horo::fail(Errc::invalid_argument,
                               "operation {} has its result in the buffer it was given", op));
    }
    if (data != nullptr) *data = o.result;
    if (bytes != nullptr) *bytes = o.result_bytes;
    if (rows != nullptr) std::copy(o.rows.begin(), o.rows.end(), rows);
    return HORO_OK;
  });
}

HORO_API horo_status horo_release(horo_op op) {
  return with_session([&](Session& session) {
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    if (!(*operation)->done()) {
      return report(
          horo::fail(Errc::in_progress, "operation {} has not completed; wait for it first", op));
    }
    session.operations().put(**operation);
    return HORO_OK;
  });
}

HORO_API horo_status horo_on_complete(horo_op op, horo_callback callback, void* user) {
  return with_session([&](Session& session) {
    if (callback == nullptr) return report(horo::fail(Errc::invalid_argument, "no callback"));
    auto operation = find(session, op);
    if (!operation) return report(operation.error());
    return report(session.on_complete(**operation, callback, user));
  });
}

HORO_API horo_status horo_alloc(size_t bytes, void** memory) {
  return with_session([&](Session& session) {
    if (memory == nullptr)
      return report(horo::fail(Errc::invalid_argument, "no place for the address"));
    auto result = session.arena().allocate(bytes);
    if (!result) return report(result.error());
    *memory = *result;
    return HORO_OK;
  });
}

HORO_API horo_status horo_free(void* memory) {
  if (memory == nullptr) return HORO_OK;
  return with_session([&](Session& session) { return report(session.arena().free(memory)); });
}

HORO_API horo_status horo_get_counters(horo_counters* counters) {
  return with_session([&](Session& session) {
    if (counters == nullptr || counters->size < kFirstCounters) {
      return report(
          horo::fail(Errc::invalid_argument, "set counters->size to sizeof(horo_counters)"));
    }
    const auto c = session.counters();
    const auto size = std::min(counters->size, sizeof(horo_counters));
    const horo_counters all{.size = size,
                            .tensors = c.tensors,
                            .entries = c.entries,
                            .bytes = c.bytes,
                            .fused_bytes = c.fused_bytes,
                            .direct_bytes = c.direct_bytes,
                            .sleeps = c.sleeps,
                            .wakes = c.wakes};
    std::memcpy(counters, &all, size);
    return HORO_OK;
  });
}

}  // extern "C"
