// SPDX-License-Identifier: Apache-2.0
// The config file: YAML whose sections and keys are the knobs' keys, or those of Horovod.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/settings.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// The file's assignments in their order, each with "path:line:column". Null values are left out.
/// Blocks: for the file. Fails: not_found, permission_denied, io; invalid_argument for what is no
/// YAML, no map of maps and values, longer than a config can be, or given twice.
Result<std::vector<Given>> read_config_file(const std::string& path);

/// The same from memory; `path` is for places only. Fails: invalid_argument.
Result<std::vector<Given>> parse_config(const std::string& text, std::string_view path);

}  // namespace horo::apps
