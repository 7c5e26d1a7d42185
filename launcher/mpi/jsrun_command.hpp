// SPDX-License-Identifier: Apache-2.0
// jsrun, the launcher of IBM's Job Step Manager: its command line, and the explicit resource file
// (ERF) that says where each of its ranks runs.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

/// Content of a resource file. Every rank gets an equal part of its host's `cpus` hardware threads;
/// the host with most ranks decides how many. Every rank gets all GPUs and memory of its host, and
/// chooses its GPU by its local rank. Pure.
/// Fails: invalid_argument, for more ranks on a host than `cpus`.
Result<std::string> compose_erf(const std::vector<PlacedHost>& hosts, int cpus);

struct JsrunRequest {
  std::string program;               ///< Path of jsrun.
  std::string erf;                   ///< Path of the file above.
  std::vector<std::string> binding;  ///< Replaces the resource file; empty: use the file.
  std::string smp_arguments;         ///< For Spectrum MPI, as one word; empty: none.
  std::vector<std::string> agent;    ///< The command that jsrun starts once per rank.
};

std::vector<std::string> compose_jsrun(const JsrunRequest& request);

/// The number behind "Thread(s) per core" in English output of lscpu; 0: it is missing.
int threads_per_core(std::string_view lscpu);

/// A temporary file that only this user can read. It is removed with this object. Immutable.
class ScratchFile {
 public:
  /// Creates the file in TMPDIR, else in /tmp. Blocks: for the disk. Fails: io, permission_denied.
  static Result<ScratchFile> write(std::string_view text);

  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace horo::launcher
