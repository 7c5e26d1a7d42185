// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/kv/kv_messages.hpp"
#include "base/kv/server/key_value_store.hpp"

namespace horo::kv {

/// Does what a request asks for that has its answer at once, and moves values out of it. Fills
/// `response` and returns the value that follows it, if there is one.
KeyValueStore::Value execute(KeyValueStore& store, Request& request, Response& response);

}  // namespace horo::kv
