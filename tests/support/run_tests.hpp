// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace horo::test {

/// Runs the test cases that the arguments select, once per call; all calls use the arguments of the
/// first. Returns the exit code of the program: 0 when no check has failed.
int run_tests(int argc, char** argv);

}  // namespace horo::test
