// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/thread_limit.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>

namespace horo::spanning {

thread_local int threads_left = -1;

}  // namespace horo::spanning

/// All libraries of this program find this function first.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  using horo::spanning::threads_left;
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return real(thread, attributes, start, argument);
}
