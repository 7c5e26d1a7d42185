// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Makes `text` the content of the file at `path`, or leaves what was there: it is written beside
/// and takes its place when all of it is on the disk. What is no plain file is written to, and what
/// nothing can lie beside (its directory's permissions, a very long name).
/// Fails: as the system says, naming the path.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace horo::apps
