// SPDX-License-Identifier: Apache-2.0
// The values of the knobs and their origins: default < config file < environment (HOROVOD_*, then
// HORO_*) < flag. It needs only a lookup of variables, so that a rank can resolve its own settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/knob.hpp"
#include "base/knobs/knob_table.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"

namespace horo {

/// The kinds of origin. A later enumerator has priority over an earlier one.
enum class OriginKind : std::uint8_t { fallback, config, environment, flag };

/// "default", "config", "environment" or "flag".
std::string_view name(OriginKind kind);

/// The origin of a value.
struct Origin {
  OriginKind kind = OriginKind::fallback;
  std::string name;  ///< "--fusion-threshold", "HORO_FUSION_THRESHOLD" or "job.yaml:3:12".

  /// For people: "flag --fusion-threshold", "default".
  std::string text() const;
};

/// One assignment as the user gave it.
struct Given {
  std::string name;  ///< Flag without dashes, or dotted path in the file.
  std::string value;
  std::string place;  ///< Its position in a config file: "job.yaml:3:12".
};

/// All places that may set a knob.
struct Sources {
  /// Works like getenv; empty if there is none.
  std::function<const char*(const char*)> environment;
  std::vector<Given> config;
  std::vector<Given> flags;  ///< The last flag of a name has priority.
  /// As in horovodrun: the file has priority over the environment, and may have unknown keys.
  bool like_horovodrun = false;
};

/// Something that the user has set and that has another effect than its name promises, or none.
struct KnobWarning {
  std::string subject;  ///< Key of the knob, or name of another variable; empty: none of these.
  std::string text;     ///< One line that names what the user wrote.

  friend bool operator==(const KnobWarning&, const KnobWarning&) = default;
};

/// Resolved values; immutable. Thread: any.
class Settings {
 public:
  /// All defaults.
  Settings();

  /// Fails: invalid_argument, one line that names key, value, origin and what is allowed.
  static Result<Settings> resolve(const Sources& sources);

  /// Resolves the settings of a rank: its environment over the defaults.
  static Result<Settings> from_environment(std::function<const char*(const char*)> lookup);

  /// `knob` must be a row of knobs.hpp.
  template <typename T>
  KnobType<T> get(const Knob<T>& knob) const {
    const KnobValue& value = at(knob.text.key).value;
    if constexpr (std::is_same_v<T, std::optional<Duration>>) {
      if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
      return Duration(std::get<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, std::string_view>) {
      return std::get<std::string>(value);
    } else if constexpr (std::is_same_v<T, double>) {
      return std::get<double>(value);
    } else if constexpr (std::is_same_v<T, Bytes>) {
      return Bytes{static_cast<std::uint64_t>(std::get<std::int64_t>(value))};
    } else {
      return static_cast<T>(std::get<std::int64_t>(value));
    }
  }

  const Origin& origin(std::string_view key) const { return at(key).origin; }

  /// True if the value is not the default. The autotuner does not change such a knob.
  bool is_set(std::string_view key) const { return origin(key).kind != OriginKind::fallback; }

  struct Explained {
    std::string_view key;
    std::string value;
    Origin origin;
  };

  /// Every knob, in the order of the table.
  std::vector<Explained> explain() const;

  /// Values that were lowered to the largest one, unknown keys of the file under `like_horovodrun`,
  /// and knobs that were set although no part of this version reads them.
  std::vector<KnobWarning> warnings() const;

  /// The knobs of the ranks that were set, as HORO_X and HOROVOD_X.
  Environment exported() const;

 private:
  struct Entry {
    KnobValue value;
    Origin origin;
  };

  const Entry& at(std::string_view key) const;
  Status assign(const KnobMatch& match, std::string_view text, Origin origin);
  Status apply_config(const Sources& sources);
  Status apply_environment(const Sources& sources);
  Status apply_flags(const Sources& sources);

  std::vector<Entry> entries_;         // In the order of knob_rows().
  std::vector<KnobWarning> warnings_;  // About single sources; a later source may override them.
};

}  // namespace horo
