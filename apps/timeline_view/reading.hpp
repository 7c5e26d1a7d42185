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

/// What is selected as one trace for Chrome's viewer, each rank a thread of a tensor's row. `write`
/// is given the text in pieces. Fails: as read_all; unsupported (a file that is such a trace
/// already).
Status export_chrome(const std::vector<std::string>& paths, const Selection& selection,
                     Sink& warnings, const std::function<bool(std::string_view)>& write);

}  // namespace horo::apps
