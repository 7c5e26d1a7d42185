// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::discovery {

/// All of a file that lists hosts. Blocks: for the file.
/// Fails: not_found, permission_denied, io, resource_exhausted (larger than any such file is).
Result<std::string> read_text_file(const std::string& path);

}  // namespace horo::discovery
