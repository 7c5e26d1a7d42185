// SPDX-License-Identifier: Apache-2.0
// What all ways of starting horo-agent on another host share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::launcher {

/// The words that start horo-agent there, each as it is: the program at `path`, else the one in
/// PATH, else exit code 127 and a line that says what was looked for.
std::vector<std::string> remote_command(const std::string& path);

/// The same for the login shell of an ssh server, whichever shell it is.
std::string remote_command_line(const std::string& path);

/// The last that a process wrote to its standard error, for an error's words. Thread: owner.
class LastWords {
 public:
  void add(std::string_view bytes);
  /// ": line; line", or empty.
  std::string text() const;

 private:
  std::string kept_;
};

}  // namespace horo::launcher
