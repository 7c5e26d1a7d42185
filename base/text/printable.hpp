// SPDX-License-Identifier: Apache-2.0
// Text that came from outside (another host, a program, a file), made safe for a terminal and for
// logs.
#pragma once

#include <string>
#include <string_view>

namespace horo {

/// `text` as one line, without terminal sequences and control characters, those of C1 (U+0080 to
/// U+009F) and of writing direction included. A line end becomes a blank, a byte that is not UTF-8
/// a question mark. Tabs stay.
std::string printable(std::string_view text);

/// As printable, but line ends stay.
std::string printable_lines(std::string_view text);

}  // namespace horo
