// SPDX-License-Identifier: Apache-2.0
// The file of tried tunings and their scores: comma-separated values. Its first columns are those
// of Horovod, so that programs for its files can read this one too.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "runtime/tuning/tuning_course.hpp"

namespace horo::runtime::tuning {

std::string header_line();

/// `hierarchical`: whether large tensors are reduced within each host first.
std::string row_line(const CourseRow& row, bool hierarchical);

/// The last line: the tuning to keep, and what it gains over the default.
std::string last_line(const CourseRow& row, bool hierarchical, const autotune::Outcome& outcome);

/// Writes whole lines, each at once. Thread: owner.
class TuningLog {
 public:
  /// Writes nothing.
  TuningLog() = default;

  /// Replaces the file. Fails: io (names the file and the reason).
  static Result<TuningLog> open(const std::string& path, bool hierarchical);

  void add(const CourseRow& row);
  void end(const CourseRow& row, const autotune::Outcome& outcome);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void write(const std::string& line);

  std::unique_ptr<std::FILE, Close> file_;
  bool hierarchical_ = false;
};

}  // namespace horo::runtime::tuning
