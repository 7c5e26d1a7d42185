// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timeline/rank_source.hpp"

namespace horo::apps {

using timeline::RankSource;

}  // namespace horo::apps
