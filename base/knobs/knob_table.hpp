// SPDX-License-Identifier: Apache-2.0
// All knobs as rows of one type, for settings, help, manual and completions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/knobs/knob.hpp"

namespace horo {

enum class KnobKind : std::uint8_t { boolean, integer, real, bytes, duration, text, choice };

/// A bound or default. Whole numbers, bytes, nanoseconds and choices are int64; monostate means no
/// value.
using KnobConstant = std::variant<std::monostate, std::int64_t, double, std::string_view>;

/// A resolved value, encoded like KnobConstant.
using KnobValue = std::variant<std::monostate, std::int64_t, double, std::string>;

struct KnobRow {
  const KnobText* text = nullptr;
  KnobKind kind = KnobKind::text;
  bool tunable = false;
  KnobConstant fallback;
  KnobConstant least;
  KnobConstant most;
};

/// Every knob, in the order of the manual. Thread: any.
std::span<const KnobRow> knob_rows();

/// Position of `key` in knob_rows(); -1 if there is no such knob.
int knob_index(std::string_view key);

std::string flag_name(std::string_view key);      ///< "fusion-threshold", without the dashes.
std::string variable_name(std::string_view key);  ///< "HORO_FUSION_THRESHOLD".

/// A name that was given, and the row that it names.
struct KnobMatch {
  int index = -1;  ///< -1: unknown.
  Spelling spelling{};
};

/// `flag` has no dashes. A switch is also found by "no-" and its name, inverted.
KnobMatch match_flag(std::string_view flag);

/// `path` is the sections joined by dots. '_' and '-' inside a word count as dots.
KnobMatch match_config(std::string_view path);

}  // namespace horo
