// SPDX-License-Identifier: Apache-2.0
// From the memory of ranks that may be gone to files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "timeline/file.hpp"

namespace horo::timeline {

/// What a region holds at this moment, as far back as its rank wants. Fails: as RegionReader.
Result<FileContent> snapshot(int fd, int index);

/// A folder of this job's own in /tmp, where the newest few stay. Fails: permission_denied, io.
Result<std::string> job_directory(std::string_view job);

struct Saved {
  int ranks = 0;          ///< That had recorded something.
  std::string directory;  ///< Where their files are.
  std::string problem;    ///< The first of those that kept a rank's records from there; or empty.
};

/// Writes rank.<r>.timeline for each of the `regions` in which something was recorded. Makes
/// `directory`; empty: one of this job's own in /tmp, where the newest few stay. A region that
/// cannot be read, or written to its file, does not keep the others from theirs. Blocks: for the
/// disk. Fails: permission_denied, io and others, naming the directory.
Result<Saved> save_regions(int fd, int regions, const std::string& directory);

}  // namespace horo::timeline
