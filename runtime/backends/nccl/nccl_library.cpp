// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/nccl/nccl_library.hpp"

#include <dlfcn.h>

#include "runtime/device/library_in_use.hpp"

namespace horo::runtime::nccl {

namespace {

constexpr Result kRemoteError = 6;

/// A library that is open; null: it cannot be loaded, and `why` says why.
struct Opened {
  void* handle = nullptr;
  std::string file;
  std::string why;
};

/// The framework's own, if it has loaded one: two in one process share no connections.
Opened open_library(const std::string& file, const Brand& brand) {
  Opened opened;
  const auto attempt = [&opened](const std::string& name, int flags) {
    if (opened.handle != nullptr || name.empty()) return;
    opened.file = name;
    opened.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    const char* const said = opened.handle == nullptr ? dlerror() : nullptr;
    if (flags == 0 && opened.why.empty()) opened.why = said == nullptr ? name : said;
  };
  if (!file.empty() && file != kAutomatic) {
    attempt(file, RTLD_NOLOAD);
    attempt(file, 0);
    return opened;
  }
  attempt(loaded_library(brand.prefix), RTLD_NOLOAD);
  for (const auto* const known : brand.files) attempt(known == nullptr ? "" : known, 0);
  return opened;
}

horo::Result<Library> find_functions(const std::string& file, const Brand& brand) {
  const auto opened = open_library(file, brand);
  if (opened.handle == nullptr) {
    return fail(Errc::unavailable, "{} cannot be loaded: {}; it comes with {}", brand.name,
                opened.why, brand.comes_with);
  }
  Library library{.brand = &brand};
  std::string missing;
  const auto find = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened.handle, symbol));
    if (function == nullptr) missing += missing.empty() ? symbol : fmt::format(", {}", symbol);
  };
  find(library.get_version, "ncclGetVersion");
  find(library.get_unique_id, "ncclGetUniqueId");
  find(library.comm_init_rank, "ncclCommInitRank");
  find(library.comm_abort, "ncclCommAbort");
  find(library.comm_destroy, "ncclCommDestroy");
  find(library.comm_get_async_error, "ncclCommGetAsyncError");
  find(library.get_error_string, "ncclGetErrorString");
  find(library.group_start, "ncclGroupStart");
  find(library.group_end, "ncclGroupEnd");
  find(library.all_reduce, "ncclAllReduce");
  find(library.reduce, "ncclReduce");
  find(library.broadcast, "ncclBroadcast");
  find(library.send, "ncclSend");
  find(library.receive, "ncclRecv");
  if (!missing.empty())
    return fail(Errc::unavailable, "{} has no {}; install {} or later", opened.file, missing,
                brand.oldest);
  return library;
}

}  // namespace

const Brand kNccl{.name = "NCCL",
                  .prefix = "libnccl.so",
                  .files = {"libnccl.so.2"},
                  .comes_with =
                      "a framework for CUDA, with PyPI's nvidia-nccl-cu13, or as "
                      "NVIDIA's libnccl2",
                  .oldest = "NCCL 2.8"};

const Brand kRccl{.name = "RCCL",
                  .prefix = "librccl.so",
                  .files = {"librccl.so.1", "/opt/rocm/lib/librccl.so.1"},
                  .comes_with = "ROCm, or with a framework that is built for ROCm",
                  .oldest = "RCCL 2.8"};

int type_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return 0;
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::i32:
      return 2;
    case DType::i64:
      return 4;
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 9;
    case DType::u16:
    case DType::i16:
      break;
  }
  return -1;
}

int op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return 0;
    case ReduceOp::product:
      return 1;
    case ReduceOp::max:
      return 2;
    case ReduceOp::min:
      return 3;
    case ReduceOp::average:
      return 4;
    case ReduceOp::adasum:
      break;
  }
  return -1;
}

std::string version_text(int version) {
  // Up to 2.8 a thousand stands for the major number, later ten thousand.
  const int major = version < 10'000 ? 1000 : 10'000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

Status Library::status(Result result, const char* call) const {
  if (result == kSuccess || result == kInProgress) return {};
  return fail(result == kRemoteError ? Errc::peer_lost : Errc::io, "{}: {}", call,
              get_error_string(result));
}

horo::Result<const Library*> load(const std::string& file, const Brand& brand) {
  static const auto library = find_functions(file, brand);
  if (!library) return Failure(library.error());
  return &*library;
}

}  // namespace horo::runtime::nccl
