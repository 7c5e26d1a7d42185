// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace horo::discovery {

/// Numbers in the kernel's form for lists of hardware threads and memory nodes, "0-3,8". What
/// follows a fault in the text is left out. Pure.
std::vector<int> parse_cpus(std::string_view list);

}  // namespace horo::discovery
