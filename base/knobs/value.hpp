// SPDX-License-Identifier: Apache-2.0
// Converts a knob's value to text and back.
#pragma once

#include <string>
#include <string_view>

#include "base/knobs/knob_table.hpp"
#include "base/result.hpp"

namespace horo {

/// Reads `text`, given by `spelling`, as a value of `row` and checks its range. Fails:
/// invalid_argument; the message says only what is allowed, and the caller names knob, value and
/// origin.
Result<KnobValue> parse_knob(const KnobRow& row, const Spelling& spelling, std::string_view text);

/// Whether `text` is a well-formed value above the row's largest one.
bool is_above_range(const KnobRow& row, const Spelling& spelling, std::string_view text);

/// Text that parse_knob converts back to the same value: "64MiB", "50us", "true".
std::string format_knob(const KnobRow& row, const KnobValue& value);

/// The value for a program that expects `spelling`: a bare number in the row's unit divided by the
/// scale, 1 or 0, or an upper-case word.
std::string format_for(const KnobRow& row, const Spelling& spelling, const KnobValue& value);

/// "a size from 0 to 1GiB", "one of: trace, debug, ...".
std::string allowed(const KnobRow& row);

/// The row's default, as format_knob writes it.
std::string format_fallback(const KnobRow& row);

KnobValue to_value(const KnobConstant& constant);

}  // namespace horo
