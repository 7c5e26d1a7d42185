// SPDX-License-Identifier: Apache-2.0
// The entry points of NCCL, for a software device. A call returns the errors that NVIDIA documents;
// what NCCL would not notice is a finding.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/software_device/nccl/device_library.hpp"
#include "tests/software_device/nccl/group.hpp"
#include "tests/software_device/nccl/nccl_element.hpp"
#include "tests/software_device/nccl/plan.hpp"
#include "tests/software_device/nccl/software_communicator.hpp"
#include "tests/software_device/nccl/software_nccl.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace {

using namespace horo::software_nccl;  // NOLINT(google-build-using-namespace): its entry points

struct UniqueId {
  std::array<char, 128> bytes;
};

/// The beginning of ncclConfig_t, which is the same in all versions that have it.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

constexpr unsigned kConfigMagic = 0xcafebeef;

/// A hash of the host's name and the device's number there.
std::uint64_t device_of_all(int on_host) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::hash<std::string>{}(fmt::format("{}/{}", host.data(), on_host));
}

/// Fails like the call that it is for: the plan, the communicator, then the arguments.
int begin_call(const char* call, void* handle, std::shared_ptr<Communicator>& communicator) {
  const int planned = Plan::instance().begin_call(call);
  if (planned != kSuccess) return planned;
  communicator = Communicators::instance().find(handle, call);
  return communicator == nullptr ? kInvalidArgument : kSuccess;
}

int check(const char* call, const Communicator& communicator, const Call& made, bool reduces) {
  const auto& what = made.what;
  const bool root = what.root >= 0 && what.root < communicator.place().ranks;
  const bool peer = made.peer >= 0 && made.peer < communicator.place().ranks;
  if (size_of(what.type) != 0 && root && peer && (!reduces || is_op(what.op)) &&
      communicator.error() != kInProgress)
    return kSuccess;
  Plan::instance().find(fmt::format("{} with type {}, operation {}, root {} and peer {}", call,
                                    what.type, what.op, what.root, made.peer));
  return kInvalidArgument;
}

int collective(const char* call, void* handle, void* stream, Call made, bool reduces) {
  std::shared_ptr<Communicator> communicator;
  int error = begin_call(call, handle, communicator);
  if (error == kSuccess && made.what.kind == Kind::send)
    made.what.root = made.receives ? made.peer : communicator->place().rank;
  if (error == kSuccess) error = check(call, *communicator, made, reduces);
  auto& group = Group::of_this_thread();
  if (error != kSuccess) return group.fail(error);
  return group.add(std::move(communicator), stream, made);
}

Operation what(Kind kind, std::size_t count, int type, int op, int root) {
  return {.kind = kind,
          .type = static_cast<std::uint8_t>(type),
          .op = static_cast<std::uint8_t>(op),
          .root = root,
          .count = count};
}

int make_communicator(const char* call, void** handle, int ranks, const UniqueId& id, int rank,
                      bool blocking) {
  const int planned = Plan::instance().begin_call(call);
  if (planned != kSuccess) return planned;
  int on_host = 0;
  const auto* const library = device_library();
  const int device = library == nullptr ? -1 : library->current(&on_host);
  if (device < 0) return kUnhandledCudaError;
  const bool named =
      id.bytes.back() == '\0' && std::strncmp(id.bytes.data(), "horo-nccl-", 10) == 0;
  if (!named || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
    return kInvalidArgument;
  if (Group::of_this_thread().is_open()) {
    Plan::instance().find(fmt::format("{} in a group, which the software NCCL cannot do", call));
    return kInvalidUsage;
  }
  auto made =
      std::make_shared<Communicator>(Communicator::Place{.id = id.bytes.data(),
                                                         .ranks = ranks,
                                                         .rank = rank,
                                                         .device = device,
                                                         .device_of_all = device_of_all(on_host)});
  if (blocking) {
    if (const int error = made->join(); error != kSuccess) return error;
    *handle = Communicators::instance().add(std::move(made));
    return kSuccess;
  }
  made->join_later();
  *handle = Communicators::instance().add(std::move(made));
  return kInProgress;
}

int end_communicator(const char* call, void* handle) {
  const int planned = Plan::instance().begin_call(call);
  if (planned != kSuccess) return planned;
  const auto communicator = Communicators::instance().end(handle, call);
  if (communicator == nullptr) return kInvalidArgument;
  if (Group::of_this_thread().holds(*communicator)) {
    Plan::instance().find(fmt::format("{} between ncclGroupStart and ncclGroupEnd", call));
    Group::of_this_thread().fail(kInvalidUsage);
  }
  const auto left = communicator->in_flight();
  if (std::strcmp(call, "ncclCommAbort") == 0) {
    communicator->abort();
  } else if (left != 0) {
    Plan::instance().find(fmt::format("{} with {} launches that have not run", call, left));
  }
  return kSuccess;
}

}  // namespace

// -- Communicators --------------------------------------------------------------------------------

ENTRY int ncclGetVersion(int* version) {
  *version = Plan::instance().version();
  return Plan::instance().begin_call("ncclGetVersion");
}

ENTRY int ncclGetUniqueId(UniqueId* id) {
  const int planned = Plan::instance().begin_call("ncclGetUniqueId");
  if (planned != kSuccess) return planned;
  const auto name = SharedMemory::new_name();
  *id = {};
  std::copy(name.begin(), name.end(), id->bytes.begin());
  return kSuccess;
}

ENTRY int ncclCommInitRank(void** communicator, int ranks, UniqueId id, int rank) {
  return make_communicator("ncclCommInitRank", communicator, ranks, id, rank, true);
}

ENTRY int ncclCommInitRankConfig(void** communicator, int ranks, UniqueId id, int rank,
                                 const Config* config) {
  if (config != nullptr && config->magic != kConfigMagic) return kInvalidArgument;
  const bool blocking = config == nullptr || config->blocking != 0;
  return make_communicator("ncclCommInitRankConfig", communicator, ranks, id, rank, blocking);
}

/// All work has been started; here it has also been seen by the caller, so nothing is left to do.
ENTRY int ncclCommFinalize(void* handle) {
  std::shared_ptr<Communicator> communicator;
  return begin_call("ncclCommFinalize", handle, communicator);
}

ENTRY int ncclCommAbort(void* handle) {
  return end_communicator("ncclCommAbort", handle);
}

ENTRY int ncclCommDestroy(void* handle) {
  return end_communicator("ncclCommDestroy", handle);
}

ENTRY int ncclCommGetAsyncError(void* handle, int* error) {
  std::shared_ptr<Communicator> communicator;
  const int failed = begin_call("ncclCommGetAsyncError", handle, communicator);
  if (failed == kSuccess) *error = communicator->error();
  return failed;
}

ENTRY int ncclCommCount(void* handle, int* count) {
  std::shared_ptr<Communicator> communicator;
  const int failed = begin_call("ncclCommCount", handle, communicator);
  if (failed == kSuccess) *count = communicator->place().ranks;
  return failed;
}

ENTRY int ncclCommUserRank(void* handle, int* rank) {
  std::shared_ptr<Communicator> communicator;
  const int failed = begin_call("ncclCommUserRank", handle, communicator);
  if (failed == kSuccess) *rank = communicator->place().rank;
  return failed;
}

ENTRY int ncclCommCuDevice(void* handle, int* device) {
  std::shared_ptr<Communicator> communicator;
  const int failed = begin_call("ncclCommCuDevice", handle, communicator);
  if (failed == kSuccess) *device = communicator->place().device;
  return failed;
}

ENTRY const char* ncclGetErrorString(int result) {
  constexpr std::array<const char*, 8> kTexts = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return result >= 0 && result < 8 ? kTexts.at(static_cast<std::size_t>(result))
                                   : "unknown result code";
}

ENTRY const char* ncclGetLastError(void*) {
  return "an error of the software NCCL";
}

// -- Groups ---------------------------------------------------------------------------------------

ENTRY int ncclGroupStart() {
  const int planned = Plan::instance().begin_call("ncclGroupStart");
  if (planned == kSuccess) Group::of_this_thread().start();
  return planned;
}

ENTRY int ncclGroupEnd() {
  const int planned = Plan::instance().begin_call("ncclGroupEnd");
  const int error = Group::of_this_thread().end();
  return planned != kSuccess ? planned : error;
}

// -- Operations -----------------------------------------------------------------------------------

ENTRY int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int op,
                        void* communicator, void* stream) {
  return collective("ncclAllReduce", communicator, stream,
                    {.what = what(Kind::all_reduce, count, type, op, 0), .in = in, .out = out},
                    true);
}

ENTRY int ncclReduce(const void* in, void* out, std::size_t count, int type, int op, int root,
                     void* communicator, void* stream) {
  return collective("ncclReduce", communicator, stream,
                    {.what = what(Kind::reduce, count, type, op, root), .in = in, .out = out},
                    true);
}

ENTRY int ncclBroadcast(const void* in, void* out, std::size_t count, int type, int root,
                        void* communicator, void* stream) {
  return collective("ncclBroadcast", communicator, stream,
                    {.what = what(Kind::broadcast, count, type, 0, root), .in = in, .out = out},
                    false);
}

ENTRY int ncclAllGather(const void* in, void* out, std::size_t count, int type, void* communicator,
                        void* stream) {
  return collective("ncclAllGather", communicator, stream,
                    {.what = what(Kind::all_gather, count, type, 0, 0), .in = in, .out = out},
                    false);
}

ENTRY int ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int op,
                            void* communicator, void* stream) {
  return collective("ncclReduceScatter", communicator, stream,
                    {.what = what(Kind::reduce_scatter, count, type, op, 0), .in = in, .out = out},
                    true);
}

ENTRY int ncclSend(const void* in, std::size_t count, int type, int peer, void* communicator,
                   void* stream) {
  return collective("ncclSend", communicator, stream,
                    {.what = what(Kind::send, count, type, 0, 0), .peer = peer, .in = in}, false);
}

ENTRY int ncclRecv(void* out, std::size_t count, int type, int peer, void* communicator,
                   void* stream) {
  return collective(
      "ncclRecv", communicator, stream,
      {.what = what(Kind::send, count, type, 0, 0), .receives = true, .peer = peer, .out = out},
      false);
}

// -- Functions of the software NCCL's own ---------------------------------------------------------

ENTRY int horo_software_nccl_plan(const char* text) {
  return Plan::instance().set(text) ? 0 : 1;
}

ENTRY std::size_t horo_software_nccl_findings(char* text, std::size_t room) {
  std::size_t count = 0;
  const auto all = Plan::instance().findings(count);
  if (room != 0) {
    const auto size = std::min(room - 1, all.size());
    std::memcpy(text, all.data(), size);
    text[size] = '\0';
  }
  return count;
}
