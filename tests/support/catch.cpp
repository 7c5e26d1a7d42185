// SPDX-License-Identifier: Apache-2.0
// Catch2, apart from the program's main(): a test program may have a main() of its own.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/support/run_tests.hpp"

namespace horo::test {

int run_tests(int argc, char** argv) {
  static Catch::Session session;
  static const int wrong = session.applyCommandLine(argc, argv);
  return wrong != 0 ? wrong : session.run();
}

}  // namespace horo::test

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
