// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"

namespace horo::apps {

/// The file of --json-report. Thread: owner.
class ReportFile {
 public:
  ReportFile() = default;  ///< No file: write() does nothing.

  /// Opens and empties `path`; an empty path means no file.
  /// Fails: permission_denied, not_found, io.
  static Result<ReportFile> open(const std::string& path);

  ReportFile(ReportFile&& other) noexcept;
  ReportFile& operator=(ReportFile&& other) noexcept;
  ~ReportFile();

  /// Replaces the content with the result of `text`. A failure is logged. Blocks: for the disk.
  void write(const std::function<std::string()>& text) const;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace horo::apps
