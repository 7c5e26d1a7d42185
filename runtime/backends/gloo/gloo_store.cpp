// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/gloo_store.hpp"

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

GlooStore::GlooStore(RendezvousStore& place, std::string prefix, Duration timeout)
    : place_(place), prefix_(std::move(prefix)), timeout_(timeout) {}

void GlooStore::set(const std::string& key, const std::vector<char>& data) {
  value_or_throw(place_.set(full(key), {data.data(), data.size()}, in(timeout_)));
}

std::vector<char> GlooStore::get(const std::string& key) {
  const auto name = full(key);
  std::string value;
  if (auto fetched = fetched_.extract(name)) {
    value = std::move(fetched.mapped());
  } else {
    value = value_or_throw(place_.get(name, in(timeout_)));
  }
  return {value.begin(), value.end()};
}

void GlooStore::wait(const std::vector<std::string>& keys) {
  wait(keys, std::chrono::ceil<std::chrono::milliseconds>(timeout_));
}

void GlooStore::wait(const std::vector<std::string>& keys,
                     const std::chrono::milliseconds& timeout) {
  // To Gloo no time is no limit.
  const auto deadline = timeout == gloo::kNoTimeout ? Deadline::never() : in(timeout);
  for (const auto& key : keys) {
    const auto name = full(key);
    fetched_.insert_or_assign(name, value_or_throw(place_.get(name, deadline)));
  }
}

std::string GlooStore::full(const std::string& key) const {
  return prefix_ + "/" + key;
}

}  // namespace horo::runtime
