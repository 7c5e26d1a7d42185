// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "launcher/resize.hpp"

namespace horo::apps {

/// All of `horo shrink` or `horo grow`: reads `words`, sends the wish to the job's launcher and
/// prints its answer. Returns the exit code. Blocks: for the launcher, a few seconds at most.
int resize_job(launcher::ResizeKind kind, std::span<const char* const> words);

}  // namespace horo::apps
