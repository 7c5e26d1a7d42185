// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/controller.hpp"

#include <algorithm>
#include <cctype>

namespace horo {

namespace {

bool is_same_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

}  // namespace

bool is_mpi_controller(std::string_view word) {
  return is_same_word(word, "mpi");
}

Status check_controller(std::string_view word, std::string_view origin) {
  if (is_same_word(word, "gloo") || is_same_word(word, "mpi")) return {};
  return fail(Errc::invalid_argument, "controller: '{}' ({}) must be gloo or mpi", word, origin);
}

Status check_controllers(const std::function<const char*(const char*)>& lookup) {
  if (lookup("HORO_RANK") != nullptr) return {};
  for (const auto* name : kControllerVariables) {
    const char* word = lookup(name);
    // An empty variable counts as unset.
    if (word == nullptr || *word == '\0') continue;
    HORO_TRY_STATUS(check_controller(word, fmt::format("environment {}", name)));
  }
  return {};
}

}  // namespace horo
