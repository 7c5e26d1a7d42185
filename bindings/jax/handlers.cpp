// SPDX-License-Identifier: Apache-2.0
// The functions that XLA calls: horo_jax_ticket numbers the runs of a call site,
// horo_jax_collective runs a collective. horo/jax/_ffi.py registers them and emits the calls.
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <sys/mman.h>
#include <utility>

#include "bindings/jax/loaded_library.hpp"
#include "bindings/jax/names.hpp"
#include "bindings/jax/waiters.hpp"
#include "bindings/jax/xla_call.hpp"

namespace horo::jax {

namespace {

/// So many runs of one call site may be in flight at once: names are used again.
constexpr std::uint32_t kInFlight = 64;

/// XLA's threads may call handlers until the process ends.
struct State {
  Tickets tickets;
  Declared declared;
  Waiters waiters;
  std::atomic<std::uint64_t> failures{0};
  std::atomic<int> last_status{HORO_OK};
};

State& state() {
  static auto* const one = new State();
  return *one;
}

const char* kind_name(horo_kind kind) {
  static constexpr const char* kNames[] = {"allreduce",     "allgather", "broadcast", "barrier",
                                           "reducescatter", "alltoall",  "join"};
  return kNames[kind];
}

std::optional<CallError> check_size(const Collective& collective) {
  const int size = horo_process_set_size(collective.set);
  if (size == collective.ranks) return std::nullopt;
  if (size < 0) {
    const bool initialized = horo_is_initialized() != 0;
    return CallError{.code = xla::XlaCode::failed_precondition,
                     .message = "horo: " + collective.name +
                                (initialized ? ": its process set was removed"
                                             : ": horo.init() has not been called")};
  }
  return CallError{.code = xla::XlaCode::failed_precondition,
                   .message = "horo: " + collective.name + ": the program was traced for " +
                              std::to_string(collective.ranks) +
                              " ranks, but the process set has " + std::to_string(size) +
                              "; call jax.clear_caches() after the number of ranks has changed"};
}

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

/// Keeps the status for horo_jax_last_failure().
void note(horo_status status) {
  state().last_status.store(status, std::memory_order_relaxed);
  state().failures.fetch_add(1, std::memory_order_release);
}

/// Waits for all, releases them and returns the first error. Blocks: until they complete; not for a
/// dead peer.
std::optional<CallError> finish(const Collective& collective, const std::vector<horo_op>& ops) {
  const bool rows = collective.kind == HORO_ALLGATHER || collective.kind == HORO_ALLTOALL;
  std::optional<CallError> first;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto status = horo_await(ops[i], -1);
    std::optional<CallError> failure;
    if (status != HORO_OK) {
      failure = last_failure(status);
      note(status);
    } else if (rows) {
      failure = check_rows(collective, i, ops[i]);
    }
    if (failure && !first) first = std::move(failure);
    horo_release(ops[i]);
  }
  return first;
}

void complete(const xla::XlaApi& api, xla::Future* future,
              const std::optional<CallError>& failure) {
  if (!failure) {
    xla::FutureArguments arguments{
        .size = sizeof(arguments), .extensions = nullptr, .future = future};
    api.set_available(&arguments);
    return;
  }
  xla::FutureErrorArguments arguments{.size = sizeof(arguments),
                                      .extensions = nullptr,
                                      .future = future,
                                      .error = make_error(api, *failure)};
  api.set_error(&arguments);
}

xla::ErrorObject* run_later(xla::Frame& frame, Collective collective, std::vector<horo_op> ops) {
  xla::FutureArguments arguments{
      .size = offsetof(xla::FutureArguments, future), .extensions = nullptr, .future = nullptr};
  if (auto* error = frame.api->create_future(&arguments)) {
    finish(collective, ops);
    return error;
  }
  auto* const future = arguments.future;
  state().waiters.run([api = frame.api, future, collective = std::move(collective),
                       ops = std::move(ops)] { complete(*api, future, finish(collective, ops)); });
  frame.future = future;
  return nullptr;
}

/// The last data argument is followed by the ticket.
std::string name_of(const Collective& collective, const XlaCall& call) {
  const auto index = static_cast<std::int64_t>(collective.inputs.size());
  std::uint32_t ticket = 0;
  if (call.arguments().count > index)
    ticket = *static_cast<const std::uint32_t*>(call.arguments().buffers[index]->data);
  auto name = std::string(kind_name(collective.kind)) + ".jit." + collective.name;
  if (collective.operations() > 1) name += "." + std::to_string(collective.inputs.size());
  return ticket == 0 ? name : name + "#" + std::to_string(ticket % kInFlight);
}

/// A barrier returns what it is given, which XLA may have put into other memory.
void pass_through(const Collective& collective) {
  for (std::size_t i = 0; i < collective.inputs.size(); ++i) {
    const auto& input = *collective.inputs[i];
    const auto bytes = bytes_of(input);
    if (bytes != 0 && collective.outputs[i]->data != input.data)
      std::memcpy(collective.outputs[i]->data, input.data, bytes);
  }
}

/// Asks for huge pages for large results. XLA takes new memory from the system for each of them,
/// and a fault for every 4 KiB takes longer than the collective. numpy does the same for its
/// arrays.
void use_huge_pages(const Collective& collective) {
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  constexpr std::uintptr_t kPage = 4096;
  for (std::size_t i = 0; i < collective.outputs.size(); ++i) {
    const auto& output = *collective.outputs[i];
    const auto bytes = bytes_of(output);
    if (bytes < kLarge || output.data == collective.inputs[i]->data) continue;
    const auto begin = (reinterpret_cast<std::uintptr_t>(output.data) + kPage - 1) & ~(kPage - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(output.data) + bytes) & ~(kPage - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
}

xla::ErrorObject* run_collective(xla::Frame& frame) {
  const XlaCall call(frame);
  Collective collective;
  CallError failure;
  if (!read(call, collective, failure)) return call.fail(failure);
  if (auto wrong = check_size(collective)) return call.fail(*wrong);
  use_huge_pages(collective);
  std::vector<horo_op> ops;
  horo_status status = HORO_OK;
  if (auto wrong = state().declared.submit(collective, name_of(collective, call), ops, status)) {
    if (status != HORO_OK) note(status);
    return call.fail(*wrong);
  }
  if (collective.kind == HORO_BARRIER) pass_through(collective);
  if (collective.async) return run_later(frame, std::move(collective), std::move(ops));
  if (auto wrong = finish(collective, ops)) return call.fail(*wrong);
  return nullptr;
}

xla::ErrorObject* give_ticket(xla::Frame& frame) {
  const XlaCall call(frame);
  const auto ticket = state().tickets.next(call.text("name"), call.run());
  const auto& results = call.results();
  for (std::int64_t i = 0; i < results.count; ++i) {
    if (results.buffers[i]->dtype == xla::ElementType::u32)
      *static_cast<std::uint32_t*>(results.buffers[i]->data) = ticket;
  }
  return nullptr;
}

/// Calls of the kind that XLA had before its foreign function interface. Before jaxlib 0.6.2 only
/// these can take and return the tokens that order calls. `results` are a token, and the ticket.
void give_old_ticket(void** results, std::string_view site) {
  *static_cast<std::uint32_t*>(results[1]) = state().tickets.next(site, std::nullopt);
}

/// Runs a handler. No exception may leave it.
template <typename Body>
xla::ErrorObject* handle(xla::Frame& frame, Body body) {
  if (answer_metadata(frame)) return nullptr;
  if (frame.stage != xla::HandlerStage::execute) return nullptr;
  try {
    return body(frame);
  } catch (const std::exception& error) {
    return make_error(*frame.api, {.code = xla::XlaCode::resource_exhausted,
                                   .message = std::string("horo: ") + error.what()});
  }
}

}  // namespace

}  // namespace horo::jax

extern "C" {

HORO_API horo::jax::xla::ErrorObject* horo_jax_collective(horo::jax::xla::Frame* frame) {
  return horo::jax::handle(*frame, horo::jax::run_collective);
}

HORO_API horo::jax::xla::ErrorObject* horo_jax_ticket(horo::jax::xla::Frame* frame) {
  return horo::jax::handle(*frame, horo::jax::give_ticket);
}

/// Call it after each horo_init: numbers of tensors are those of one job. Thread: any.
HORO_API void horo_jax_forget() {
  horo::jax::state().declared.forget();
}

/// As horo::jax::use_library: 1 or 0.
HORO_API int horo_jax_use_library(const char* path) {
  return horo::jax::use_library(path) ? 1 : 0;
}

/// The status of the latest operation of libhoro that failed inside a program, and how many have
/// failed so far. Thread: any.
HORO_API int horo_jax_last_failure(std::uint64_t* failures) {
  *failures = horo::jax::state().failures.load(std::memory_order_acquire);
  return horo::jax::state().last_status.load(std::memory_order_relaxed);
}

HORO_API void horo_jax_old_ticket(void* results, const void** /*arguments*/, const char* site,
                                  std::size_t length, void* /*status*/) {
  horo::jax::give_old_ticket(static_cast<void**>(results), {site, length});
}

/// Passes a token on after the collective whose result is its other argument.
HORO_API void horo_jax_old_after(void* /*results*/, const void** /*arguments*/,
                                 const char* /*opaque*/, std::size_t /*length*/, void* /*status*/) {
}

}  // extern "C"
