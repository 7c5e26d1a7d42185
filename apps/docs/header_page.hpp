// SPDX-License-Identifier: Apache-2.0
// The public headers as pages of the manual: each declaration with the comment in front of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::apps {

struct Header {
  std::string_view name;  ///< As it is included: horo/tensor.hpp.
  std::string_view text;
};

/// A header in C. Its text is one introduction, and sections that begin with a "-- Title ---"
/// comment. Pure. Fails: invalid_argument, naming a function whose comment lacks one of Thread:,
/// Blocks: and Fails:.
Result<std::string> c_page(const Header& header);

/// Headers in C++, laid out as clang-format does: classes with their public functions, all else as
/// it stands. Pure. Fails: invalid_argument, naming a public function that has no comment, or that
/// may throw and whose comment lacks Fails:. Default and copy members need none.
Result<std::string> cpp_page(const std::vector<Header>& headers);

}  // namespace horo::apps
