// SPDX-License-Identifier: Apache-2.0
// Reads the log of an autotuner, Horo's or Horovod's: comma-separated values.
#pragma once

#include <string>
#include <string_view>

#include "apps/tune/record/tune_record.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Blocks: for the file. Fails: not_found, permission_denied, io; as parse_tune_log.
Result<TuneRecord> read_tune_log(const std::string& path);

/// The same from memory; `path` is used in messages only. Columns are found by the header's names.
/// Lines that are cut or damaged are left out, with a warning that names the line. Fails:
/// invalid_argument (no text, or no header of such a log).
Result<TuneRecord> parse_tune_log(std::string_view text, std::string_view path);

}  // namespace horo::apps
