// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "horo/horo.h"

namespace horo::mpi_abi {

/// The functions of libhoro that the module calls. It does not link libhoro, because in a wheel and
/// in a build tree the library has another file name than its soname.
struct HoroFunctions {
  decltype(&::horo_init) init = nullptr;
  decltype(&::horo_shutdown) shutdown = nullptr;
  decltype(&::horo_is_initialized) is_initialized = nullptr;
  decltype(&::horo_rank) rank = nullptr;
  decltype(&::horo_size) size = nullptr;
  decltype(&::horo_last_error) last_error = nullptr;
  decltype(&::horo_add_process_set) add_process_set = nullptr;
  decltype(&::horo_declare) declare = nullptr;
  decltype(&::horo_submit_with) submit_with = nullptr;
  decltype(&::horo_await) await = nullptr;
  decltype(&::horo_release) release = nullptr;
};

/// Those of the libhoro beside this module, which the first call loads. nullptr: it cannot be
/// loaded, and standard error says why. Thread: any.
const HoroFunctions* horo_functions();

}  // namespace horo::mpi_abi
