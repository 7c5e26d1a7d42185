// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"

namespace horo::apps {

/// The file of --json-report, or none. Thread: owner.
class ReportFile {
 public:
  ReportFile() = default;  ///< None: write() does nothing.

  /// Opens `path`, emptied; an empty path is none. Fails: permission_denied, not_found, io.
  static Result<ReportFile> open(const std::string& path);

  ReportFile(ReportFile&& other) noexcept;
  ReportFile& operator=(ReportFile&& other) noexcept;
  ~ReportFile();

  /// Writes what `text` makes in place of what is there; a failure is logged. Blocks: for the disk.
  void write(const std::function<std::string()>& text) const;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace horo::apps
