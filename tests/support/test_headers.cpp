// SPDX-License-Identifier: Apache-2.0
// An object library needs a source file; this one has test_headers.hpp compiled for all targets
// that reuse it.
