// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_tests.hpp"

int main(int argc, char** argv) {
  return horo::test::run_tests(argc, argv);
}
