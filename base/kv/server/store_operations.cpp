// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/store_operations.hpp"

#include <utility>

namespace horo::kv {

namespace {

void fill(Response& response, Status status) {
  if (status) return;
  response.status = status.error().code;
  response.value = std::move(status).error().message;
}

void fill_missing(const KeyValueStore& store, Response& response, const Request& request) {
  for (const auto& key : request.keys) {
    if (store.find(key)) continue;
    if (response.number++ == 0) response.value = key;
  }
}

}  // namespace

KeyValueStore::Value execute(KeyValueStore& store, Request& request, Response& response) {
  const auto& key = request.keys.front();
  KeyValueStore::Value value;
  switch (request.op) {
    case Op::set:
      fill(response, store.set(key, std::move(request.value)));
      break;
    case Op::find:
      value = store.find(key);
      response.present = value != nullptr;
      break;
    case Op::missing:
      fill_missing(store, response, request);
      break;
    case Op::add: {
      auto sum = store.add(key, request.delta);
      if (sum) response.number = *sum;
      fill(response, sum ? Status{} : Status(Failure(std::move(sum).error())));
      break;
    }
    case Op::compare_and_set: {
      auto swapped = store.compare_and_set(key, request.expected, std::move(request.value));
      response.swapped = swapped && *swapped;
      fill(response, swapped ? Status{} : Status(Failure(std::move(swapped).error())));
      if (response.status == Errc::ok) value = store.find(key);
      response.present = value != nullptr;
      break;
    }
    case Op::erase:
      response.number = static_cast<std::int64_t>(store.erase(request.keys));
      break;
    case Op::get:
    case Op::wait:
      break;
  }
  return value;
}

}  // namespace horo::kv
