// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::timeline {

/// Serves the HTML `page` to browsers on this machine that know the address, until a signal
/// arrives, whose number is returned. `tell` gets the address once the server accepts connections.
/// Blocks. Fails: unavailable, permission_denied, io.
Result<int> serve_page(std::string_view page, const std::function<void(const std::string&)>& tell);

}  // namespace horo::timeline
