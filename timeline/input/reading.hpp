// SPDX-License-Identifier: Apache-2.0
// Reads files by name and passes their operations to a sink.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "timeline/analysis/model.hpp"

namespace horo::timeline {

/// Reads all `paths`: the files of ranks merged by time, traces one after the other. Damage is a
/// warning; a file that cannot be used at all is an error.
/// Fails: not_found, permission_denied, io, invalid_argument, protocol, version_mismatch.
Status read_all(const std::vector<std::string>& paths, OperationSink& sink);

/// Tells the sink the time of the earliest event of all traces, from which a selection of times
/// counts. This reads the traces an extra time. A source that can be read only once, such as a
/// FIFO, counts from the first event that is read. The files of ranks do not need this.
void report_start(const std::vector<std::string>& paths, OperationSink& sink);

/// Writes the selected records as one trace for Chrome's viewer, with each rank as a thread of a
/// tensor's row. `write` gets the text in pieces; on failure it returns false and sets errno.
/// Fails: as read_all; unsupported (a file that is such a trace already).
Status export_chrome(const std::vector<std::string>& paths, const Selection& selection,
                     OperationSink& warnings, const std::function<bool(std::string_view)>& write);

}  // namespace horo::timeline
