// SPDX-License-Identifier: Apache-2.0
// The keys and values of one job, within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::kv {

struct StoreLimits {
  Bytes value{std::uint64_t{4} << 20U};    ///< Size of one value.
  Bytes total{std::uint64_t{256} << 20U};  ///< Size of all keys and values, each with kEntryCost.
  std::size_t keys = std::size_t{1} << 20U;
};

/// Thread: owner. Fails: resource_exhausted (names the limit); the store is then unchanged.
class KeyValueStore {
 public:
  /// Shared, so that an answer that is being sent keeps a value that is replaced meanwhile.
  using Value = std::shared_ptr<const std::string>;

  static constexpr std::size_t kEntryCost =
      128;  ///< The approximate size of a table entry without its bytes.

  explicit KeyValueStore(const StoreLimits& limits) : limits_(limits) {}

  Status set(std::string_view key, std::string value);

  Value find(std::string_view key) const;  ///< Null when the key does not exist.

  /// Also fails: invalid_argument (the value is no decimal number, or the sum does not fit 64
  /// bits).
  Result<std::int64_t> add(std::string_view key, std::int64_t delta);

  /// Returns true when the key had `expected` (nullopt: did not exist) and now has `desired`.
  Result<bool> compare_and_set(std::string_view key, const std::optional<std::string>& expected,
                               std::string desired);

  std::size_t erase(std::span<const std::string> keys);

  /// Erases all keys for which `unwanted` is true. Looks at every key.
  std::size_t erase_if(const std::function<bool(std::string_view key)>& unwanted);

  std::size_t keys() const { return values_.size(); }

  Bytes bytes() const { return Bytes{bytes_}; }

 private:
  struct Hash {
    using is_transparent = void;

    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  const StoreLimits limits_;
  std::unordered_map<std::string, Value, Hash, std::equal_to<>> values_;
  std::uint64_t bytes_ = 0;
};

}  // namespace horo::kv
