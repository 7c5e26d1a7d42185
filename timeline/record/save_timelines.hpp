// SPDX-License-Identifier: Apache-2.0
// Saves the records of ranks, which may have ended, from their memory to files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "timeline/record/timeline_file.hpp"

namespace horo::timeline {

/// The present contents of a region, as far back as its rank asked for. Fails: as RegionReader.
Result<FileContent> snapshot(int fd, int index);

/// Makes a folder for this job in /tmp. Only the folders of the newest few jobs are kept.
/// Fails: permission_denied, io.
Result<std::string> job_directory(std::string_view job);

struct Saved {
  int ranks = 0;          ///< Number of ranks that had recorded something.
  std::string directory;  ///< The folder with their files.
  std::string problem;    ///< The first failure to save a rank's records; empty: there was none.
};

/// Writes rank.<r>.timeline for each of the `regions` in which something was recorded. Makes
/// `directory`; where that is empty, a job_directory(). A region that cannot be read or written
/// does not prevent the others from being saved. Blocks: for the disk. Fails: permission_denied, io
/// and others, naming the directory.
Result<Saved> save_regions(int fd, int regions, const std::string& directory);

}  // namespace horo::timeline
