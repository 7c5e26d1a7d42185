// SPDX-License-Identifier: Apache-2.0
// The functions of libhoro that the module calls. They are found in the library that the Python
// package has loaded, so that the module links no libhoro and there is only one in the process.
#include "bindings/jax/loaded_library.hpp"

#include <dlfcn.h>

namespace horo::jax {

namespace {

/// Pointers to the functions, by the types that horo.h gives them.
struct Functions {
  decltype(&horo_status_name) status_name;
  decltype(&horo_last_error) last_error;
  decltype(&horo_last_error_detail) last_error_detail;
  decltype(&horo_declare) declare;
  decltype(&horo_submit_all) submit_all;
  decltype(&horo_process_set_size) process_set_size;
  decltype(&horo_is_initialized) is_initialized;
  decltype(&horo_result) result;
  decltype(&horo_await) await;
  decltype(&horo_on_complete) on_complete;
  decltype(&horo_release) release;
};

/// Written once, before XLA knows the handlers.
Functions functions;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool use_library(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  auto& f = functions;
  return find(library, "horo_status_name", f.status_name) &&
         find(library, "horo_last_error", f.last_error) &&
         find(library, "horo_last_error_detail", f.last_error_detail) &&
         find(library, "horo_declare", f.declare) &&
         find(library, "horo_submit_all", f.submit_all) &&
         find(library, "horo_process_set_size", f.process_set_size) &&
         find(library, "horo_is_initialized", f.is_initialized) &&
         find(library, "horo_result", f.result) && find(library, "horo_await", f.await) &&
         find(library, "horo_on_complete", f.on_complete) &&
         find(library, "horo_release", f.release);
}

}  // namespace horo::jax

using horo::jax::functions;

extern "C" {

const char* horo_status_name(horo_status status) {
  return functions.status_name(status);
}

const char* horo_last_error(void) {
  return functions.last_error();
}

horo_status horo_last_error_detail(horo_error_detail* detail) {
  return functions.last_error_detail(detail);
}

horo_status horo_declare(const horo_tensor_desc* desc, horo_tensor* tensor) {
  return functions.declare(desc, tensor);
}

horo_status horo_submit_all(const horo_submission* submissions, size_t n, horo_op* ops) {
  return functions.submit_all(submissions, n, ops);
}

int horo_process_set_size(horo_set set) {
  return functions.process_set_size(set);
}

int horo_is_initialized(void) {
  return functions.is_initialized();
}

horo_status horo_result(horo_op op, const void** data, size_t* bytes, int64_t* rows) {
  return functions.result(op, data, bytes, rows);
}

horo_status horo_await(horo_op op, int64_t timeout_ms) {
  return functions.await(op, timeout_ms);
}

horo_status horo_on_complete(horo_op op, horo_callback callback, void* user) {
  return functions.on_complete(op, callback, user);
}

horo_status horo_release(horo_op op) {
  return functions.release(op);
}

}  // extern "C"
