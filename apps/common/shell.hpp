// SPDX-License-Identifier: Apache-2.0
// Words for a shell to take as they are.
#pragma once

#include <string>
#include <string_view>

namespace horo::apps {

/// `word` between single quotes. Thread: any.
std::string shell_quoted(std::string_view word);

}  // namespace horo::apps
