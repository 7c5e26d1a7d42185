// SPDX-License-Identifier: Apache-2.0
// What shells offer behind `horo`: from the command tree, so that nothing is forgotten.
#pragma once

#include <string>

namespace horo::apps {

/// The files completions/horo.bash, completions/_horo and completions/horo.fish.
std::string bash_completions();
std::string zsh_completions();
std::string fish_completions();

}  // namespace horo::apps
