// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

// Some tests ask for more memory than there is. That must fail in the same way as without a
// sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#if defined(__SANITIZE_ADDRESS__)
#define HORO_SANITIZER_OPTIONS __asan_default_options
#else
#define HORO_SANITIZER_OPTIONS __tsan_default_options
#endif
extern "C" __attribute__((visibility("default"))) const char* HORO_SANITIZER_OPTIONS();

const char* HORO_SANITIZER_OPTIONS() {
  return "allocator_may_return_null=1";
}
#endif
