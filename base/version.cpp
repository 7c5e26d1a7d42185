// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

namespace horo {

std::string_view version() {
  return HORO_VERSION_STRING;
}

std::uint32_t version_code() {
  return HORO_VERSION_CODE;
}

}  // namespace horo
