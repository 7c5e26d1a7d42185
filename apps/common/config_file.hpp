// SPDX-License-Identifier: Apache-2.0
// The config file: YAML. Its sections and keys are those of the knobs, or Horovod's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/settings.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// The file's assignments in their order, each with "path:line:column". Null values are left out.
/// Blocks: for the file. Fails: not_found, permission_denied, io; invalid_argument, for text that
/// is not YAML or not a map of maps and values, too long, or with a key given twice.
Result<std::vector<Given>> read_config_file(const std::string& path);

/// The same from memory; `path` is used in messages only. Fails: invalid_argument.
Result<std::vector<Given>> parse_config(const std::string& text, std::string_view path);

}  // namespace horo::apps
