// SPDX-License-Identifier: Apache-2.0
// Writes the public headers as pages of the manual: each declaration with the comment before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::apps {

struct Header {
  std::string_view name;  ///< As in an include: horo/tensor.hpp.
  std::string_view text;
};

/// A header in C. It has an introduction, and sections that begin with a "-- Title ---" comment.
/// Pure. Fails: invalid_argument, naming a function whose comment lacks one of Thread:, Blocks: and
/// Fails:.
Result<std::string> c_page(const Header& header);

/// Headers in C++, formatted by clang-format: classes with their public functions, and all other
/// code unchanged. Pure. Fails: invalid_argument, naming a public function that has no comment, or
/// one that may throw and lacks Fails:. Default and copy members need no comment.
Result<std::string> cpp_page(const std::vector<Header>& headers);

}  // namespace horo::apps
