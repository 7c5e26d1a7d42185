// SPDX-License-Identifier: Apache-2.0
// The type of one knob's row. Flag, environment variable, config key, help and manual follow from
// the key: `fusion.threshold` is --fusion-threshold, HORO_FUSION_THRESHOLD and `fusion:
// {threshold:}`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.hpp"
#include "base/strong.hpp"

namespace horo {

/// Who acts on a knob. Those of the ranks travel to them in their environment when they were set.
enum class KnobReader : std::uint8_t { ranks, launcher };

/// Another name for a knob, as Horovod spells it, and what its value means there.
struct Spelling {
  std::string_view name{};
  double scale = 1;       ///< Factor on a bare number: --fusion-threshold-mb counts 1048576 bytes.
  bool inverted = false;  ///< True there is false here: HOROVOD_LOG_HIDE_TIME.
  bool only_raises = false;  ///< Values under the default are taken as the default.
};

/// What a person reads and types.
struct KnobText {
  std::string_view key{};
  std::string_view group{};
  std::string_view help{};
  std::string_view unit{};  ///< Of a bare number: bytes, ns, us, ms, s; else what is counted.
  std::string_view none{};  ///< Of an optional value: the word for "no value".
  bool zero_is_none = false;
  std::array<std::string_view, 6> choices{};  ///< Of an enumeration: its words, in its order.
  KnobReader reader = KnobReader::ranks;
  bool passed_on = false;  ///< No part of this version acts on it; the ranks get it all the same.
  std::array<Spelling, 4> flags{};
  Spelling variable{};
  Spelling config{};
};

using OptionalDuration = std::optional<Duration>;

/// One row. T: bool, int, double, Bytes, Duration, OptionalDuration, std::string_view or an
/// enumeration that counts from 0. Numbers lie in [least, most].
template <typename T>
struct Knob {
  KnobText text;
  T fallback{};
  T least{};
  T most{};
  bool tunable = false;  ///< The autotuner may move it unless it was set.
};

/// What Settings::get returns for a Knob<T>.
template <typename T>
using KnobType = std::conditional_t<std::is_same_v<T, std::string_view>, std::string, T>;

}  // namespace horo
