// SPDX-License-Identifier: Apache-2.0
// jsrun, the launcher of IBM's Job Step Manager: its command line, and the explicit resource file
// (ERF) that says where each of its ranks runs.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

/// Every rank an equal part of its host's `cpus` hardware threads, as the host with most ranks
/// allows, neighbours first, and all of its GPUs and memory: a rank takes its own GPU by its local
/// rank. Pure. Fails: invalid_argument, for more ranks on a host than `cpus`.
Result<std::string> compose_erf(const std::vector<PlacedHost>& hosts, int cpus);

struct JsrunRequest {
  std::string program;               ///< jsrun.
  std::string erf;                   ///< Path of the file above.
  std::vector<std::string> binding;  ///< In place of the file; empty: the file.
  std::string smp_arguments;         ///< For Spectrum MPI, as one word; empty: none.
  std::vector<std::string> agent;    ///< What it starts once per rank.
};

std::vector<std::string> compose_jsrun(const JsrunRequest& request);

/// "Thread(s) per core" of what lscpu prints in English; 0: it does not say.
int threads_per_core(std::string_view lscpu);

/// A file that only this user can read, as long as this lives. Thread: immutable.
class ScratchFile {
 public:
  /// In TMPDIR, else /tmp. Blocks: for the file. Fails: io and its kin.
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
