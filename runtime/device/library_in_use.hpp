// SPDX-License-Identifier: Apache-2.0
// Shared libraries that this process has loaded already, such as those that a framework brings
// along.
#pragma once

#include <string>
#include <string_view>

namespace horo::runtime {

/// The path of a loaded library whose file name begins with `prefix`; empty: none is loaded.
/// Loads nothing and searches no folder. Thread: any.
std::string loaded_library(std::string_view prefix);

}  // namespace horo::runtime
