// SPDX-License-Identifier: Apache-2.0
// The type of a knob's row. The flag, the variable, the config key, the help and the manual follow
// from the key: `fusion.threshold` is --fusion-threshold, HORO_FUSION_THRESHOLD and `fusion:
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

/// The program that reads a knob. Knobs of the ranks are passed to them in their environment if
/// they were set.
enum class KnobReader : std::uint8_t { ranks, launcher };

/// The ways of starting ranks for which a knob of the launcher does something.
enum class KnobScope : std::uint8_t {
  every_start,
  agents,
  agents_or_mpirun,
  mpirun,
  mpirun_or_jsrun
};

/// Another name for a knob, as Horovod spells it, and how to convert its value. A value above the
/// knob's range counts as the largest one, because Horovod's ranges are wider.
struct Spelling {
  std::string_view name{};
  double scale = 1;       ///< Factor of a bare number: --fusion-threshold-mb counts 1048576 bytes.
  bool inverted = false;  ///< True means false here: HOROVOD_LOG_HIDE_TIME.
  bool only_raises = false;  ///< Values below the default count as the default.
};

/// The texts of a knob.
struct KnobText {
  std::string_view key{};
  std::string_view group{};
  std::string_view help{};
  std::string_view unit{};  ///< The unit of a bare number: bytes, ns, us, ms, s; otherwise the
                            ///< thing that is counted.
  std::string_view none{};  ///< The word for "no value" of an optional knob.
  bool zero_is_none = false;
  bool zero_is_default = false;               ///< Horovod takes 0 for "not set" or "off".
  std::array<std::string_view, 6> choices{};  ///< The words of an enumeration, in its order.
  KnobReader reader = KnobReader::ranks;
  KnobScope scope = KnobScope::every_start;
  /// Why no part of this version reads the knob; empty: some part does. The ranks get the value
  /// anyway. The user is told, unless a switch is set to its default.
  std::string_view inert{};
  /// For texts: whether a value has the form that `form` describes. Null: every text has.
  bool (*has_form)(std::string_view) = nullptr;
  std::string_view form{};
  std::array<Spelling, 4> flags{};
  Spelling variable{};
  Spelling config{};
};

using OptionalDuration = std::optional<Duration>;

/// One row. T is bool, int, double, Bytes, Duration, OptionalDuration, std::string_view or an
/// enumeration that counts from 0. Numbers are in [least, most].
template <typename T>
struct Knob {
  KnobText text;
  T fallback{};
  T least{};
  T most{};
  bool tunable = false;  ///< The autotuner may change it unless the user has set it.
};

/// The type that Settings::get returns for a Knob<T>.
template <typename T>
using KnobType = std::conditional_t<std::is_same_v<T, std::string_view>, std::string, T>;

}  // namespace horo
