// SPDX-License-Identifier: Apache-2.0
// A fast path for simple events. Most events are short, have no nesting but their arguments, have
// no escapes, and lie in the buffer completely. JsonReader reads the others and reports their
// faults.
#pragma once

#include "timeline/chrome/chrome_reader.hpp"

namespace horo::timeline {

/// Reads the event at `from` into `event`, whose texts point into the buffer. A zero must end the
/// buffer. Returns the event's end; null where the event is not simple, and then `event` is
/// undefined. The result is the same as JsonReader's.
const char* read_simple_event(const char* from, ChromeEvent& event);

}  // namespace horo::timeline
