// SPDX-License-Identifier: Apache-2.0
// Completions for shells, generated from the command tree so that they are complete.
#pragma once

#include <string>

namespace horo::apps {

/// Contents of the files completions/horo.bash, completions/_horo and completions/horo.fish.
std::string bash_completions();
std::string zsh_completions();
std::string fish_completions();

}  // namespace horo::apps
