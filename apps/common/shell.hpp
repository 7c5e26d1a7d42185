// SPDX-License-Identifier: Apache-2.0
// Words quoted for a shell.
#pragma once

#include <string>
#include <string_view>

namespace horo::apps {

/// `word` between single quotes. Thread: any.
std::string shell_quoted(std::string_view word);

}  // namespace horo::apps
