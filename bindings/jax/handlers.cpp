// SPDX-License-Identifier: Apache-2.0
// The functions that XLA calls: horo_jax_ticket numbers the runs of a call site,
// horo_jax_collective runs a collective. horo/jax/_ffi.py registers them and emits the calls.
#include <cstring>
#include <exception>
#include <memory>
#include <sys/mman.h>
#include <utility>

#include "bindings/jax/failures.hpp"
#include "bindings/jax/in_flight.hpp"
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
};

State& state() {
  static auto* const one = new State();
  return *one;
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

xla::ErrorObject* run_later(xla::Frame& frame, InFlight& running) {
  xla::FutureArguments arguments{
      .size = offsetof(xla::FutureArguments, future), .extensions = nullptr, .future = nullptr};
  if (auto* error = frame.api->create_future(&arguments)) {
    running.finish();
    return error;
  }
  frame.future = arguments.future;
  running.finish_later(state().waiters, *frame.api, arguments.future);
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
  const auto name = name_of(collective, call);
  // All memory is taken before the submission: afterwards nothing may throw, since the operations
  // use XLA's buffers.
  const auto running = std::make_shared<InFlight>(std::move(collective));
  const auto& submitted = running->collective();
  horo_status status = HORO_OK;
  if (auto wrong = state().declared.submit(submitted, name, running->ops(), status)) {
    if (status != HORO_OK) failures().note(status);
    return call.fail(*wrong);
  }
  if (submitted.kind == HORO_BARRIER) pass_through(submitted);
  if (submitted.async) return run_later(frame, *running);
  if (auto wrong = running->finish()) return call.fail(*wrong);
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
HORO_API int horo_jax_last_failure(std::uint64_t* count) {
  const auto last = horo::jax::failures().last();
  *count = last.count;
  return last.status;
}

/// The facts of that failure, as bindings/error_fields.hpp writes them, cut to `room` bytes with
/// the null at the end. Thread: any.
HORO_API void horo_jax_last_failure_text(char* text, std::size_t room) {
  const auto last = horo::jax::failures().last();
  text[last.fields.copy(text, room - 1)] = '\0';
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
