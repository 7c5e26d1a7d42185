// SPDX-License-Identifier: Apache-2.0
// horo-mpiabi.so: the functions of MPI that XLA's collectives on the CPU call, over libhoro. The
// MPItrampoline inside jaxlib loads it (MPITRAMPOLINE_LIB), and asks for each name of the standard.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/mpi_abi/departure.hpp"
#include "bindings/mpi_abi/horo_functions.hpp"
#include "bindings/mpi_abi/mpi_communicator.hpp"

using Handle = std::uintptr_t;
using horo::mpi_abi::Code;
using horo::mpi_abi::Departure;
using horo::mpi_abi::error_text;
using horo::mpi_abi::horo_functions;
using horo::mpi_abi::MpiCommunicator;
using horo::mpi_abi::MpiCommunicators;
using horo::mpi_abi::refuse;

#define HORO_MPI_EXPORT extern "C" __attribute__((visibility("default")))
#define HORO_MPI_VALUE(name, value)  \
  HORO_MPI_EXPORT const Handle name; \
  const Handle name = static_cast<Handle>(value)

// Versions of the interface: MPItrampoline asks for MPIABI 2.9 or a later 2.
// NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared cannot have any
#define HORO_MPI_NUMBER(name, value) \
  HORO_MPI_EXPORT const int name;    \
  const int name = (value)
// NOLINTEND(bugprone-macro-parentheses)
HORO_MPI_NUMBER(mpiwrapper_version_major, 2);
HORO_MPI_NUMBER(mpiwrapper_version_minor, 11);
HORO_MPI_NUMBER(mpiwrapper_version_patch, 0);
HORO_MPI_NUMBER(mpiabi_version_major, 2);
HORO_MPI_NUMBER(mpiabi_version_minor, 10);
HORO_MPI_NUMBER(mpiabi_version_patch, 0);

// MPItrampoline reads each constant in its own type: an int, or a handle as large as a pointer.
constexpr Handle kWorld = 17;
HORO_MPI_VALUE(MPIABI_SUCCESS, 0);
HORO_MPI_VALUE(MPIABI_THREAD_SINGLE, 0);
HORO_MPI_VALUE(MPIABI_THREAD_FUNNELED, 1);
HORO_MPI_VALUE(MPIABI_THREAD_SERIALIZED, 2);
HORO_MPI_VALUE(MPIABI_THREAD_MULTIPLE, 3);
HORO_MPI_VALUE(MPIABI_COMM_NULL, 0);
HORO_MPI_VALUE(MPIABI_COMM_WORLD, kWorld);
HORO_MPI_VALUE(MPIABI_REQUEST_NULL, 0);
HORO_MPI_VALUE(MPIABI_IN_PLACE, -1);
HORO_MPI_VALUE(MPIABI_UNDEFINED, -32766);
HORO_MPI_VALUE(MPIABI_STATUS_IGNORE, 0);
HORO_MPI_VALUE(MPIABI_STATUSES_IGNORE, 0);
#define HORO_MPI_CONSTANT(name) HORO_MPI_VALUE(name, 1000 + __COUNTER__);
#include "bindings/mpi_abi/constants.inc"

#define HORO_MPI_FUNCTION(name)                                        \
  HORO_MPI_EXPORT int name() {                                         \
    std::fputs("horo: MPI: " #name                                     \
               " is not provided by horo-mpiabi.so, which serves jax " \
               "only; unset MPITRAMPOLINE_LIB for other programs\n",   \
               stderr);                                                \
    std::abort();                                                      \
  }
#include "bindings/mpi_abi/not_provided.inc"

namespace {

struct Element {
  horo_dtype dtype = HORO_UINT8;
  std::int64_t parts = 1;  ///< Numbers per element: 2 for complex ones.
  std::size_t bytes = 1;
  bool is_unsigned = false;  ///< It travels as a signed one, which only a sum and a product allow.
  bool is_complex = false;
};

std::optional<Element> element_of(Handle type) {
  if (type == MPIABI_C_BOOL) return Element{.dtype = HORO_BOOL};
  if (type == MPIABI_INT8_T || type == MPIABI_CHAR) return Element{.dtype = HORO_INT8};
  if (type == MPIABI_UINT8_T || type == MPIABI_BYTE) return Element{};
  if (type == MPIABI_INT16_T) return Element{.dtype = HORO_INT16, .bytes = 2};
  if (type == MPIABI_UINT16_T) return Element{.dtype = HORO_UINT16, .bytes = 2};
  if (type == MPIABI_INT32_T || type == MPIABI_INT) return Element{.dtype = HORO_INT32, .bytes = 4};
  if (type == MPIABI_INT64_T) return Element{.dtype = HORO_INT64, .bytes = 8};
  if (type == MPIABI_UINT32_T) return Element{.dtype = HORO_INT32, .bytes = 4, .is_unsigned = true};
  if (type == MPIABI_UINT64_T) return Element{.dtype = HORO_INT64, .bytes = 8, .is_unsigned = true};
  if (type == MPIABI_FLOAT) return Element{.dtype = HORO_FLOAT32, .bytes = 4};
  if (type == MPIABI_DOUBLE) return Element{.dtype = HORO_FLOAT64, .bytes = 8};
  if (type == MPIABI_C_COMPLEX || type == MPIABI_C_FLOAT_COMPLEX)
    return Element{.dtype = HORO_FLOAT32, .parts = 2, .bytes = 8, .is_complex = true};
  if (type == MPIABI_C_DOUBLE_COMPLEX)
    return Element{.dtype = HORO_FLOAT64, .parts = 2, .bytes = 16, .is_complex = true};
  return std::nullopt;
}

/// The operation on such elements. Fails: with nothing (they have no such reduction).
std::optional<horo_reduce_op> op_of(Handle op, const Element& element) {
  const bool flag = element.dtype == HORO_BOOL;
  if (op == MPIABI_SUM && !flag) return HORO_SUM;
  if (op == MPIABI_PROD && !element.is_complex && !flag) return HORO_PRODUCT;
  if (element.is_unsigned || element.is_complex) return std::nullopt;
  if (op == MPIABI_MIN || (flag && (op == MPIABI_LAND || op == MPIABI_BAND || op == MPIABI_PROD)))
    return HORO_MIN;
  if (op == MPIABI_MAX || (flag && (op == MPIABI_LOR || op == MPIABI_BOR || op == MPIABI_SUM)))
    return HORO_MAX;
  return std::nullopt;
}

/// The object whose address MPI's caller keeps as a handle.
template <typename Object>
Object* object_of(Handle handle) {
  return reinterpret_cast<Object*>(handle);  // NOLINT(performance-no-int-to-ptr): MPI's handles
}

MpiCommunicator* communicator_of(Handle handle) {
  return handle == kWorld ? MpiCommunicators::instance().world()
                          : object_of<MpiCommunicator>(handle);
}

constexpr const char* kNotSent = "these elements cannot be sent; use jax's gloo collectives";

Code no_reduction() {
  return refuse("this reduction of these elements is not possible; jax's gloo collectives have it");
}

Code reduce(horo_kind kind, const void* in, void* out, std::int64_t count, Handle type, Handle op,
            Handle comm) {
  const auto element = element_of(type);
  const auto reduction = element ? op_of(op, *element) : std::nullopt;
  if (!reduction) return no_reduction();
  const bool in_place = reinterpret_cast<Handle>(in) == MPIABI_IN_PLACE;
  return communicator_of(comm)->run({.kind = kind,
                                     .dtype = element->dtype,
                                     .op = *reduction,
                                     .count = count * element->parts,
                                     .label = "sum",
                                     .in = in_place ? out : in,
                                     .out = out});
}

/// Elements of `count` per rank move as bytes.
Code move(horo_kind kind, const void* in, void* out, std::int64_t count, Handle type, Handle comm) {
  const auto element = element_of(type);
  if (!element) return refuse(kNotSent);
  auto& communicator = *communicator_of(comm);
  const auto bytes = count * static_cast<std::int64_t>(element->bytes);
  const auto ranks = static_cast<std::int64_t>(communicator.ranks().size());
  return communicator.run({.kind = kind,
                           .count = kind == HORO_ALLTOALL ? bytes * ranks : bytes,
                           .label = "move",
                           .in = in,
                           .out = out,
                           .out_bytes = static_cast<std::size_t>(bytes * ranks)});
}

// -- Messages ------------------------------------------------------------------------------------

/// A message that MPI_Isend or MPI_Irecv has begun. It is exchanged in the first wait of its
/// thread.
struct Message {
  int source = 0;  ///< Ranks of the job.
  int target = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
};

struct Pending {
  Message message;
  Code code = 0;
  bool done = false;
};

/// The messages of this thread that no wait has ended yet, by the number that MPI's caller keeps as
/// their handle. Numbers rise, so they stand in the order in which they began.
thread_local std::map<Handle, Pending> pending;

Handle next_handle() {
  static std::atomic<Handle> last{MPIABI_REQUEST_NULL};
  return ++last;
}

/// A caller that is refused a message gives up those that it has begun before, and their memory may
/// be gone at the thread's next wait.
Code refuse_message(std::string text) {
  pending.clear();
  return refuse(std::move(text));
}

/// All ranks exchange their messages in one order, so that none waits for another in a circle.
void exchange_all() {
  std::vector<Pending*> open;
  for (auto& [handle, one] : pending)
    if (!one.done) open.push_back(&one);
  std::ranges::stable_sort(open, {}, [](const Pending* one) {
    const auto& m = one->message;
    return std::tuple(std::min(m.source, m.target), std::max(m.source, m.target), m.source);
  });
  for (auto* one : open) {
    const auto& m = one->message;
    one->code = MpiCommunicators::instance().message(m.source, m.target, m.data, m.bytes);
    one->done = true;
  }
}

enum class Direction { send, receive };

Code begin(Direction direction, const void* data, int count, Handle type, int peer, Handle comm,
           Handle* request) {
  const auto element = element_of(type);
  if (!element) return refuse_message(kNotSent);
  const auto& ranks = communicator_of(comm)->ranks();
  if (peer < 0 || peer >= static_cast<int>(ranks.size())) {
    return refuse_message("there is no rank " + std::to_string(peer) +
                          "; any source is not possible");
  }
  const int own = horo_functions()->rank();
  const int other = ranks[static_cast<std::size_t>(peer)];
  *request = next_handle();
  pending[*request].message = {.source = direction == Direction::send ? own : other,
                               .target = direction == Direction::send ? other : own,
                               .data = const_cast<void*>(data),
                               .bytes = count * static_cast<std::int64_t>(element->bytes)};
  return 0;
}

Code finish(Handle* request) {
  if (*request == MPIABI_REQUEST_NULL) return 0;
  const auto found = pending.find(*request);
  *request = MPIABI_REQUEST_NULL;
  if (found == pending.end()) {
    return refuse(
        "this thread has no such message: a later one was refused, or another thread "
        "began it");
  }
  if (!found->second.done) exchange_all();
  const Code code = found->second.code;
  pending.erase(found);
  return code;
}

int write_text(char* text, int* length, const std::string& value) {
  constexpr std::size_t kMost = 255;
  *length = static_cast<int>(value.copy(text, kMost));
  text[*length] = '\0';
  return 0;
}

}  // namespace

// The functions have MPI's parameters.
HORO_MPI_EXPORT void mpiwrapper_export_fortran_constants_() {}

HORO_MPI_EXPORT int MPIABI_Init_thread(int*, char***, int, int* provided) {
  if (provided != nullptr) *provided = static_cast<int>(MPIABI_THREAD_MULTIPLE);
  return MpiCommunicators::instance().start();
}

HORO_MPI_EXPORT int MPIABI_Init(int*, char***) {
  return MpiCommunicators::instance().start();
}

HORO_MPI_EXPORT int MPIABI_Initialized(int* flag) {
  *flag = MpiCommunicators::instance().world() != nullptr ? 1 : 0;
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Finalized(int* flag) {
  *flag = 0;
  return 0;
}

// jax calls it first when the interpreter ends, before it waits for the other processes.
HORO_MPI_EXPORT int MPIABI_Finalize() {
  if (MpiCommunicators::instance().world() != nullptr) Departure::instance().begin();
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Is_thread_main(int* flag) {
  *flag = 1;  // any thread may call
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Query_thread(int* provided) {
  *provided = static_cast<int>(MPIABI_THREAD_MULTIPLE);
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Get_version(int* version, int* subversion) {
  *version = 3;
  *subversion = 1;
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Get_library_version(char* text, int* length) {
  return write_text(text, length, "Horo: the part of MPI that jax needs");
}

HORO_MPI_EXPORT int MPIABI_Error_string(int, char* text, int* length) {
  return write_text(text, length, error_text());
}

HORO_MPI_EXPORT int MPIABI_Error_class(int code, int* its_class) {
  *its_class = code;
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Comm_rank(Handle comm, int* rank) {
  *rank = communicator_of(comm)->rank();
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Comm_size(Handle comm, int* size) {
  *size = static_cast<int>(communicator_of(comm)->ranks().size());
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Comm_split(Handle comm, int colour, int key, Handle* made) {
  if (comm != kWorld) return refuse("MPI_Comm_split of another communicator than the world");
  MpiCommunicator* found = nullptr;
  const Code code = MpiCommunicators::instance().split(colour, key, found);
  *made = reinterpret_cast<Handle>(found);
  return code;
}

// A later split of the same ranks gives the same communicator.
HORO_MPI_EXPORT int MPIABI_Comm_free(Handle* comm) {
  *comm = MPIABI_COMM_NULL;
  return 0;
}

HORO_MPI_EXPORT int MPIABI_Barrier(Handle comm) {
  return communicator_of(comm)->run({.kind = HORO_BARRIER, .label = "barrier"});
}

HORO_MPI_EXPORT int MPIABI_Allreduce(const void* in, void* out, int count, Handle type, Handle op,
                                     Handle comm) {
  return reduce(HORO_ALLREDUCE, in, out, count, type, op, comm);
}

HORO_MPI_EXPORT int MPIABI_Reduce_scatter_block(const void* in, void* out, int count, Handle type,
                                                Handle op, Handle comm) {
  const auto ranks = static_cast<std::int64_t>(communicator_of(comm)->ranks().size());
  return reduce(HORO_REDUCESCATTER, in, out, count * ranks, type, op, comm);
}

HORO_MPI_EXPORT int MPIABI_Reduce_scatter(const void* in, void* out, const int* counts, Handle type,
                                          Handle op, Handle comm) {
  const auto ranks = communicator_of(comm)->ranks().size();
  if (std::adjacent_find(counts, counts + ranks, std::not_equal_to<>()) != counts + ranks)
    return refuse("MPI_Reduce_scatter with counts that differ");
  return MPIABI_Reduce_scatter_block(in, out, counts[0], type, op, comm);
}

HORO_MPI_EXPORT int MPIABI_Allgather(const void* in, int count, Handle type, void* out, int, Handle,
                                     Handle comm) {
  return move(HORO_ALLGATHER, in, out, count, type, comm);
}

HORO_MPI_EXPORT int MPIABI_Alltoall(const void* in, int count, Handle type, void* out, int, Handle,
                                    Handle comm) {
  return move(HORO_ALLTOALL, in, out, count, type, comm);
}

HORO_MPI_EXPORT int MPIABI_Isend(const void* data, int count, Handle type, int peer, int,
                                 Handle comm, Handle* request) {
  return begin(Direction::send, data, count, type, peer, comm, request);
}

HORO_MPI_EXPORT int MPIABI_Irecv(void* data, int count, Handle type, int peer, int, Handle comm,
                                 Handle* request) {
  return begin(Direction::receive, data, count, type, peer, comm, request);
}

HORO_MPI_EXPORT int MPIABI_Wait(Handle* request, void*) {
  return finish(request);
}

HORO_MPI_EXPORT int MPIABI_Waitall(int count, Handle* requests, void*) {
  Code first = 0;
  for (int i = 0; i < count; ++i) {
    const Code code = finish(&requests[i]);
    if (first == 0) first = code;
  }
  return first;
}

HORO_MPI_EXPORT int MPIABI_Send(const void* data, int count, Handle type, int peer, int,
                                Handle comm) {
  Handle request = MPIABI_REQUEST_NULL;
  const Code code = begin(Direction::send, data, count, type, peer, comm, &request);
  return code != 0 ? code : finish(&request);
}

HORO_MPI_EXPORT int MPIABI_Recv(void* data, int count, Handle type, int peer, int, Handle comm,
                                void*) {
  Handle request = MPIABI_REQUEST_NULL;
  const Code code = begin(Direction::receive, data, count, type, peer, comm, &request);
  return code != 0 ? code : finish(&request);
}

HORO_MPI_EXPORT int MPIABI_Sendrecv(const void* sent, int sent_count, Handle sent_type, int target,
                                    int, void* received, int count, Handle type, int source, int,
                                    Handle comm, void*) {
  Handle requests[2] = {MPIABI_REQUEST_NULL, MPIABI_REQUEST_NULL};
  if (const Code code =
          begin(Direction::receive, received, count, type, source, comm, &requests[0]))
    return code;
  if (const Code code =
          begin(Direction::send, sent, sent_count, sent_type, target, comm, &requests[1]))
    return code;
  return MPIABI_Waitall(2, requests, nullptr);
}
