// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace horo {

/// The name and the command line under which other programs see this process. Changes both after a
/// fork, when a program serves in several roles. Thread: while the process has one.
class ProcessTitle {
 public:
  /// Remembers the command line that the process was started with.
  ProcessTitle();

  /// Shows `title` as name and as command line. `title` has at most 15 bytes; a command line that
  /// was shorter than it cuts it.
  void show(const char* title) const;

  /// Shows `name`, and the remembered command line.
  void restore(const char* name) const;

 private:
  char* arguments_ = nullptr;  ///< The kernel reads the command line there; null: unknown.
  std::string original_;
};

}  // namespace horo
