// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Makes `text` the content of the file at `path`, or leaves the old file: a second file is written
/// in the same folder and renamed when it is complete. Writes directly where `path` is not a
/// regular file, or where a second file is impossible (the folder's permissions, a very long name).
/// Fails: with the system's error, naming the path.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace horo::apps
