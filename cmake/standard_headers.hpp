// SPDX-License-Identifier: Apache-2.0
// The standard headers that most files include, compiled once. A file still includes what it uses:
// the presets without HORO_PCH, and the lint test "each header compiles alone", would not compile
// otherwise.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
