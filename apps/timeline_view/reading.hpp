// SPDX-License-Identifier: Apache-2.0
// From the names of files to what a sink takes of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/timeline_view/model.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Reads all `paths` through, ranks' files side by side and traces one after the other. What is
/// damaged is a warning, what cannot be used at all an error.
/// Fails: not_found, permission_denied, io, invalid_argument, protocol, version_mismatch.
Status read_all(const std::vector<std::string>& paths, Sink& sink);

/// Tells the sink when the earliest of all traces' events is, which is known before they are read
/// only by reading them twice. Times are selected from there. What can be read but once is counted
/// from the first event that is read, and ranks' files need no such thing.
void tell_start(const std::vector<std::string>& paths, Sink& sink);

/// What is selected as one trace for Chrome's viewer, each rank a thread of a tensor's row. `write`
/// is given the text in pieces, and says false with errno. Fails: as read_all; unsupported (a file
/// that is such a trace already).
Status export_chrome(const std::vector<std::string>& paths, const Selection& selection,
                     Sink& warnings, const std::function<bool(std::string_view)>& write);

}  // namespace horo::apps
