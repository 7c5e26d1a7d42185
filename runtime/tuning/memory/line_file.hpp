// SPDX-License-Identifier: Apache-2.0
// A file of lines that several processes of a user read and change at once. Writers hold a lock,
// and replace the file as a whole, so a reader finds the old file or the new one. The file begins
// with its version and ends with the number of its lines, so that a cut one is recognised. A
// damaged file is put aside with a warning, and a new one begins.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::runtime::tuning {

/// Which file it is.
struct LineFileForm {
  std::string_view name;    ///< In its folder.
  std::string_view header;  ///< The first line, up to the version.
  std::string_view kind;    ///< "a file of tuning results", for people.
  int version = 1;
  /// Whether a change has to survive a loss of power. Each such change costs milliseconds.
  bool durable = true;
  /// Whether a line is whole. Fails: protocol, which says that the file is damaged.
  std::function<Status(std::string_view)> check;
};

/// Thread: any. Blocks: on the file system, and up to two seconds for the lock.
class LineFile {
 public:
  using Lines = std::vector<std::string>;

  /// The folder is made when something is written.
  LineFile(std::string folder, LineFileForm form);

  /// Without a file, there are none. Fails: io, unsupported (the file is of a later version).
  Result<Lines> list() const;

  /// Replaces the lines by what `change` makes of them. Fails: as list; timed_out (another process
  /// holds the lock).
  Status change(const std::function<void(Lines&)>& change) const;

  const std::string& path() const { return path_; }

 private:
  Result<Lines> parse(std::string_view text) const;
  Result<Lines> read_or_put_aside() const;
  Status put_aside(const std::string& reason) const;
  Status replace(const Lines& lines) const;

  std::string folder_;
  LineFileForm form_;
  std::string path_;
};

}  // namespace horo::runtime::tuning
