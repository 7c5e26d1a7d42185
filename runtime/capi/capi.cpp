// SPDX-License-Identifier: Apache-2.0
// The C ABI of ranks, tensors and memory: checks and converts arguments, catches exceptions, and
// refuses calls of forked children.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/version.hpp"
#include "horo/horo.h"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/capi/capi_support.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/session/session.hpp"

namespace {

using horo::Deadline;
using horo::Errc;
using horo::MutexLock;
using horo::Rank;
using horo::Result;
using horo::SetId;
using horo::Status;
using horo::SteadyClock;
using horo::TensorId;
using horo::WorkerIdentity;
using horo::runtime::DType;
using horo::runtime::is_device_memory;
using horo::runtime::Kind;
using horo::runtime::look_for_accelerators;
using horo::runtime::MemoryKind;
using horo::runtime::Operation;
using horo::runtime::ReduceOp;
using horo::runtime::Session;
using horo::runtime::SetSubmission;
using horo::runtime::Signature;
using horo::runtime::Submission;
using horo::runtime::TensorHandle;
using horo::runtime::capi::guarded;
using horo::runtime::capi::last_error;
using horo::runtime::capi::Process;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

template <typename Read>
int number(const Read& read) {
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed) || !p.joined.load(std::memory_order_acquire))
    return -1;
  return read(*p.session.load(std::memory_order_acquire));
}

int identity_number(int (*read)(const WorkerIdentity&)) {
  return number([read](const Session& session) { return read(session.identity()); });
}

// Sizes of the structures in the first release of the ABI; callers know at least these fields.
constexpr std::size_t kFirstTensorDesc = offsetof(horo_tensor_desc, postscale) + sizeof(double);
// Where the structure ended before. A field in its padding would have any value.
static_assert(offsetof(horo_tensor_desc, wire_dtype) ==
              offsetof(horo_tensor_desc, group) + 2 * sizeof(const char*));
constexpr std::size_t kFirstSubmission =
    offsetof(horo_submission, split_count) + sizeof(std::size_t);
constexpr std::size_t kFirstCounters = offsetof(horo_counters, wakes) + sizeof(std::uint64_t);
constexpr std::size_t kFirstErrorDetail =
    offsetof(horo_error_detail, rank_count) + sizeof(std::size_t);

/// A caller's structure. Fields that its version lacks are as in `initial`. Fails: unsupported (a
/// caller of a later version sets a field that this library does not know).
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
    return horo::fail(Errc::invalid_argument, "kind {} is not one of HORO_ALLREDUCE ... HORO_JOIN",
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
  HORO_TRY_STATUS(horo::runtime::capi::set_memory(desc, s));
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
  HORO_TRY_STATUS(horo::runtime::capi::set_wire(desc, process().wire, s));
  HORO_TRY_STATUS(check_supported(s));
  return s;
}

constexpr const char* kJoinName = "horo.join";

// A handle holds the set, the incarnation (which tells a name from earlier ones in its slot) and
// the slot.
constexpr int kSlotBits = 20;
constexpr int kIncarnationBits = 32;

/// Differs for each session, so that no session takes a tensor of an earlier one for its own.
std::uint32_t salt() {
  return process().sessions.load(std::memory_order_relaxed) * 0x9e3779b9U;
}

horo_tensor to_handle(SetId set, TensorHandle tensor) {
  return std::uint64_t{set.value()} << (kSlotBits + kIncarnationBits) |
         std::uint64_t{tensor.incarnation ^ salt()} << kSlotBits | tensor.id.value();
}

std::pair<SetId, TensorHandle> from_handle(horo_tensor tensor) {
  return {SetId{static_cast<std::uint32_t>(tensor >> (kSlotBits + kIncarnationBits))},
          TensorHandle{TensorId{static_cast<std::uint32_t>(tensor & ((1U << kSlotBits) - 1))},
                       static_cast<std::uint32_t>(tensor >> kSlotBits) ^ salt()}};
}

/// Fails: unsupported. The runtime copies with the host's instructions, which would crash.
Status refuse_device_memory(const Submission& given) {
  if (given.memory == MemoryKind::device) return {};
  for (const void* const pointer : {given.in, static_cast<const void*>(given.out)}) {
    if (!is_device_memory(pointer)) continue;
    return horo::fail(Errc::unsupported,
                      "the {} buffer at {} is memory of a GPU; declare and submit the tensor with "
                      "HORO_MEMORY_DEVICE, or copy it to host memory first",
                      pointer == given.in ? "input" : "output", pointer);
  }
  return {};
}

horo_status submit(Session& session, const SetSubmission& s, horo_op* op) {
  if (op == nullptr)
    return report(horo::fail(Errc::invalid_argument, "the pointer for the operation is null"));
  if (auto here = refuse_device_memory(s.given); !here) return report(here);
  auto operation = session.submit(s.set, s.tensor, s.given);
  if (!operation) return report(operation.error());
  *op = (*operation)->handle();
  return HORO_OK;
}

Result<SetSubmission> known_submission(const horo_submission* given) {
  HORO_TRY(const auto known, known_fields(given, kFirstSubmission, HORO_SUBMISSION_INIT));
  if (known.split_count != 0 && known.splits == nullptr)
    return horo::fail(Errc::invalid_argument, "the pointer for {} splits is null",
                      known.split_count);
  HORO_TRY_STATUS(horo::runtime::capi::check_memory(known.memory));
  const auto [set, tensor] = from_handle(known.tensor);
  return SetSubmission{
      .set = set,
      .tensor = tensor,
      .given = {.in = known.in,
                .out = known.out,
                .room = known.out_bytes,
                .splits = {known.splits, known.splits != nullptr ? known.split_count : 0},
                .memory = static_cast<MemoryKind>(known.memory),
                .device = known.memory == HORO_MEMORY_DEVICE ? known.device : -1,
                .stream = known.stream}};
}

}  // namespace

extern "C" {

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

HORO_API int horo_is_homogeneous(void) {
  return number([](const Session& session) { return session.homogeneous() ? 1 : 0; });
}

HORO_API int horo_overlaps(void) {
  return number([](const Session& session) { return session.overlaps() ? 1 : 0; });
}

HORO_API const char* horo_version(void) {
  return horo::version().data();
}

HORO_API int horo_abi_version(void) {
  return HORO_ABI_VERSION;
}

HORO_API const char* horo_last_error(void) {
  return last_error.message.c_str();
}

HORO_API horo_status horo_last_error_detail(horo_error_detail* detail) {
  if (detail == nullptr || detail->size < kFirstErrorDetail) {
    return report(
        horo::fail(Errc::invalid_argument,
                   "horo_last_error_detail: set detail->size to sizeof(horo_error_detail)"));
  }
  static const horo::ErrorDetail none;
  const auto& known = last_error.detail != nullptr ? *last_error.detail : none;
  const auto size = std::min(detail->size, sizeof(horo_error_detail));
  const horo_error_detail all{.size = size,
                              .status = static_cast<horo_status>(last_error.code),
                              .subject = static_cast<horo_subject>(known.subject),
                              .tensor = known.tensor.c_str(),
                              .host = known.host.c_str(),
                              .ranks = known.ranks.data(),
                              .rank_count = known.ranks.size()};
  std::memcpy(detail, &all, size);
  return HORO_OK;
}

HORO_API const char* horo_status_name(horo_status status) {
  return horo::name(static_cast<Errc>(status)).data();
}

HORO_API horo_status horo_declare(const horo_tensor_desc* given, horo_tensor* tensor) {
  return with_session([&](Session& session) {
    auto desc = known_fields(given, kFirstTensorDesc, HORO_TENSOR_DESC_INIT);
    if (!desc) return report(std::move(desc).error().context("horo_declare: horo_tensor_desc"));
    if (tensor == nullptr)
      return report(
          horo::fail(Errc::invalid_argument, "horo_declare: the pointer for the tensor is null"));
    look_for_accelerators();
    const SetId set{desc->process_set};
    auto signature = to_signature(*desc, session.identity().size);
    if (!signature) {
      return report(std::move(signature).error().context(
          fmt::format("tensor '{}'", desc->name != nullptr ? desc->name : "(unnamed)")));
    }
    // A set has one join, so all callers use the same name.
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
      return report(horo::fail(Errc::invalid_argument,
                               "the pointer to the submissions or to their operations is null"));
    std::vector<SetSubmission> all;
    for (size_t i = 0; i < n; ++i) {
      // One caller compiled them, so all structures have the same size.
      const auto* at = reinterpret_cast<const std::byte*>(submissions) + i * submissions->size;
      auto known = known_submission(reinterpret_cast<const horo_submission*>(at));
      if (!known) return report(std::move(known).error().context("horo_submit_all"));
      if (auto here = refuse_device_memory(known->given); !here) return report(here);
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
  if (n != 0 && (tensors == nullptr || in == nullptr || ops == nullptr)) {
    return report(
        horo::fail(Errc::invalid_argument,
                   "horo_submit_many: the pointer to the tensors, inputs or operations is null"));
  }
  for (size_t i = 0; i < n; ++i) {
    const auto status = horo_submit(tensors[i], in[i], out != nullptr ? out[i] : nullptr, &ops[i]);
    if (status != HORO_OK) return status;
    if (submitted != nullptr) *submitted = i + 1;
  }
  return HORO_OK;
}

HORO_API horo_status horo_alloc(size_t bytes, void** memory) {
  return guarded([&] {
    if (memory == nullptr)
      return report(horo::fail(Errc::invalid_argument, "the pointer for the address is null"));
    auto result = process().arenas.allocate(bytes);
    if (!result) return report(result.error());
    *memory = *result;
    return HORO_OK;
  });
}

HORO_API horo_status horo_free(void* memory) {
  if (memory == nullptr) return HORO_OK;
  // Arenas outlive sessions, so no session is needed.
  return guarded([memory] { return report(process().arenas.free(memory)); });
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
                            .wakes = c.wakes,
                            .rounded_bytes = c.rounded_bytes};
    std::memcpy(counters, &all, size);
    return HORO_OK;
  });
}

}  // extern "C"
