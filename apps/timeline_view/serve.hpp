// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Shows `page`, HTML, to browsers on this machine that know the address, until a signal asks to
/// end; its number is returned. `tell` is given the address once it is good. Blocks.
/// Fails: unavailable, permission_denied, io.
Result<int> serve_page(std::string_view page, const std::function<void(const std::string&)>& tell);

}  // namespace horo::apps
