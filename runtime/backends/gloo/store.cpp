// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/deadline.hpp"

namespace horo::runtime {

namespace {

Deadline in(Duration time) {
  return Deadline::in(SteadyClock::instance(), time);
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw GlooStoreError(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

}  // namespace

GlooStore::GlooStore(kv::Client& client, std::string prefix, Duration timeout)
    : client_(client), prefix_(std::move(prefix)), timeout_(timeout) {}

void GlooStore::set(const std::string& key, const std::vector<char>& data) {
  value_or_throw(client_.set(full(key), {data.data(), data.size()}, in(timeout_)));
}

std::vector<char> GlooStore::get(const std::string& key) {
  const auto value = value_or_throw(client_.get(full(key), in(timeout_)));
  return {value.begin(), value.end()};
}

void GlooStore::wait(const std::vector<std::string>& keys) {
  wait(keys, std::chrono::ceil<std::chrono::milliseconds>(timeout_));
}

void GlooStore::wait(const std::vector<std::string>& keys,
                     const std::chrono::milliseconds& timeout) {
  std::vector<std::string> names;
  std::transform(keys.begin(), keys.end(), std::back_inserter(names),
                 [this](const std::string& key) { return full(key); });
  // To Gloo no time is no limit.
  const auto deadline = timeout == gloo::kNoTimeout ? Deadline::never() : in(timeout);
  value_or_throw(client_.wait(names, deadline));
}

std::string GlooStore::full(const std::string& key) const {
  return prefix_ + "/" + key;
}

}  // namespace horo::runtime
