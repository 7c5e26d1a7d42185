// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo {

/// Opens a file for a result and empties it. `what` names its purpose in an error: "plan". Fails:
/// unavailable (a pipe that nothing reads: opening it would block), or as open does.
Result<UniqueFd> open_output_file(std::string_view what, const std::string& path);

}  // namespace horo
