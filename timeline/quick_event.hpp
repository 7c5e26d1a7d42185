// SPDX-License-Identifier: Apache-2.0
// Most events are short, flat but for their arguments, without escapes, and in the buffer whole.
// These are read in one go; JsonReader reads the others, and says what is wrong with them.
#pragma once

#include "timeline/chrome_reader.hpp"

namespace horo::timeline {

/// Reads the event at `from`, which a zero follows sooner or later, into `event`, whose texts stay
/// where they lie. Returns its end; null where it is not of that kind, and `event` means nothing.
/// What it reads JsonReader reads alike.
const char* read_quickly(const char* from, ChromeEvent& event);

}  // namespace horo::timeline
