// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/key_value_store.hpp"

#include <charconv>
#include <utility>

namespace horo::kv {

Status KeyValueStore::set(std::string_view key, std::string value) {
  if (value.size() > limits_.value.value()) {
    return fail(Errc::resource_exhausted,
                "value of key '{}' has {} bytes; the server takes at most {}; split it", key,
                value.size(), limits_.value);
  }
  const auto found = values_.find(key);
  const bool is_new = found == values_.end();
  if (is_new && values_.size() >= limits_.keys) {
    return fail(Errc::resource_exhausted,
                "no room for key '{}': the server holds {} keys, its limit; erase some", key,
                limits_.keys);
  }
  const std::uint64_t freed = is_new ? 0 : found->second->size();
  const std::uint64_t added = value.size() + (is_new ? key.size() + kEntryCost : 0);
  if (bytes_ - freed + added > limits_.total.value()) {
    return fail(Errc::resource_exhausted,
                "no room for key '{}' with {} bytes: the server holds {} of at most {} bytes; "
                "erase some keys",
                key, value.size(), bytes_, limits_.total);
  }
  bytes_ += added - freed;
  auto shared = std::make_shared<const std::string>(std::move(value));
  if (is_new) {
    values_.emplace(key, std::move(shared));
  } else {
    found->second = std::move(shared);
  }
  return {};
}

KeyValueStore::Value KeyValueStore::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

Result<std::int64_t> KeyValueStore::add(std::string_view key, std::int64_t delta) {
  std::int64_t number = 0;
  if (const auto value = find(key)) {
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, number);
    if (error != std::errc{} || stop != end) {
      return fail(Errc::invalid_argument, "value '{}' of key '{}' is not a number to add to",
                  value->substr(0, 64), key);
    }
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum)) {
    return fail(Errc::invalid_argument, "{} + {} for key '{}' does not fit 64 bits", number, delta,
                key);
  }
  HORO_TRY_STATUS(set(key, std::to_string(sum)));
  return sum;
}

Result<bool> KeyValueStore::compare_and_set(std::string_view key,
                                            const std::optional<std::string>& expected,
                                            std::string desired) {
  const auto value = find(key);
  const bool matches = value ? expected.has_value() && *expected == *value : !expected.has_value();
  if (!matches) return false;
  HORO_TRY_STATUS(set(key, std::move(desired)));
  return true;
}

std::size_t KeyValueStore::erase(std::span<const std::string> keys) {
  std::size_t erased = 0;
  for (const auto& key : keys) {
    const auto found = values_.find(key);
    if (found == values_.end()) continue;
    bytes_ -= found->first.size() + found->second->size() + kEntryCost;
    values_.erase(found);
    ++erased;
  }
  return erased;
}

std::size_t KeyValueStore::erase_if(const std::function<bool(std::string_view key)>& unwanted) {
  return std::erase_if(values_, [&](const auto& entry) {
    if (!unwanted(entry.first)) return false;
    bytes_ -= entry.first.size() + entry.second->size() + kEntryCost;
    return true;
  });
}

}  // namespace horo::kv
