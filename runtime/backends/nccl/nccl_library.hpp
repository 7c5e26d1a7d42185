// SPDX-License-Identifier: Apache-2.0
// NCCL's functions, found at run time, and as much of its interface as is used here, as NVIDIA
// documents it. These numbers and signatures have been the same in all versions 2. AMD's RCCL has
// the same functions, numbers and versions:
//   https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/api-library.html
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "runtime/device/device.hpp"
#include "runtime/tensor/dtype.hpp"

namespace horo::runtime::nccl {

using Comm = struct ncclComm*;
using Result = int;  ///< 0: success; 7: in progress.

struct UniqueId {
  std::array<char, 128> bytes{};
};

inline constexpr Result kSuccess = 0;
inline constexpr Result kInProgress = 7;

/// ncclDataType_t; -1 where NCCL has none of that kind.
int type_of(DType dtype);

/// ncclRedOp_t; -1 where NCCL has none.
int op_of(ReduceOp op);

/// The oldest version that can be used, as ncclGetVersion returns it.
inline constexpr int kOldestVersion = 2800;

/// "2.28.9". Pure.
std::string version_text(int version);

/// NCCL or RCCL. There are two objects of this type, and code compares their addresses.
struct Brand {
  const char* name;
  const char* prefix;                ///< With which the names of its files begin.
  std::array<const char*, 2> files;  ///< They are tried in this order.
  const char* comes_with;            ///< The place where a user finds it.
  const char* oldest;                ///< The oldest version that can be used.
};

extern const Brand kNccl;
extern const Brand kRccl;

/// Stands for a file: that of the brand.
inline constexpr const char* kAutomatic = "auto";

struct Library {
  const Brand* brand = &kNccl;
  Result (*get_version)(int* version);
  Result (*get_unique_id)(UniqueId* id);
  Result (*comm_init_rank)(Comm* comm, int ranks, UniqueId id, int rank);
  Result (*comm_abort)(Comm comm);
  Result (*comm_destroy)(Comm comm);
  Result (*comm_get_async_error)(Comm comm, Result* error);
  const char* (*get_error_string)(Result result);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void* in, void* out, std::size_t count, int type, int op, Comm comm,
                       StreamHandle stream);
  Result (*reduce)(const void* in, void* out, std::size_t count, int type, int op, int root,
                   Comm comm, StreamHandle stream);
  Result (*broadcast)(const void* in, void* out, std::size_t count, int type, int root, Comm comm,
                      StreamHandle stream);
  Result (*send)(const void* in, std::size_t count, int type, int peer, Comm comm,
                 StreamHandle stream);
  Result (*receive)(void* out, std::size_t count, int type, int peer, Comm comm,
                    StreamHandle stream);

  /// Fails: peer_lost (a remote error), io.
  Status status(Result result, const char* call) const;
};

/// Loaded once per process: when one is loaded already, the arguments do not matter. Fails:
/// unavailable (no such file, or without a function; which).
horo::Result<const Library*> load(const std::string& file = kAutomatic, const Brand& brand = kNccl);

}  // namespace horo::runtime::nccl
