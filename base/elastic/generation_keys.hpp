// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace horo::elastic {

/// The generation (the epoch) whose ranks use this key of the store to meet and to connect.
/// Nothing: the key is not of that kind. Ranks that end meanwhile leave such keys behind, so the
/// launcher erases them by their names, which the runtime chooses: `horo/hosts/`, `horo/tree/` and
/// `horo/sets/`, each with the generation's number.
std::optional<std::uint64_t> generation_of_key(std::string_view key);

}  // namespace horo::elastic
