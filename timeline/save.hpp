// SPDX-License-Identifier: Apache-2.0
// From the memory of ranks that may be gone to files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "timeline/file.hpp"

namespace horo::timeline {

/// All that a region holds at this moment. Fails: as RegionReader.
Result<FileContent> snapshot(int fd, int index);

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
