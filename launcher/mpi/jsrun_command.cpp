// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/jsrun_command.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "base/unique_fd.hpp"

namespace horo::launcher {

Result<std::string> compose_erf(const std::vector<PlacedHost>& hosts, int cpus) {
  int most = 1;
  for (const auto& host : hosts) {
    if (host.count() > cpus) {
      return fail(Errc::invalid_argument,
                  "{} ranks on host '{}', which has {} hardware threads for the job; give it fewer "
                  "with -H or --ranks-per-host",
                  host.count(), host.name, cpus);
    }
    most = std::max(most, host.count());
  }
  const int each = cpus / most;
  std::string text = "overlapping_rs: allow\ncpu_index_using: logical\n";
  for (const auto& host : hosts) {
    text += "\n";
    int first = 0;
    for (const auto rank : host.ranks) {
      text += fmt::format("rank: {}: {{ hostname: {}; cpu: {{{}-{}}} ; gpu: * ; mem: * }}\n", rank,
                          host.name, first, first + each - 1);
      first += each;
    }
  }
  return text;
}

std::vector<std::string> compose_jsrun(const JsrunRequest& request) {
  std::vector<std::string> words{request.program};
  if (request.binding.empty()) {
    words.insert(words.end(), {"--erf_input", request.erf});
  } else {
    words.insert(words.end(), request.binding.begin(), request.binding.end());
  }
  if (!request.smp_arguments.empty())
    words.insert(words.end(), {"--smpiargs", request.smp_arguments});
  words.insert(words.end(), request.agent.begin(), request.agent.end());
  return words;
}

int threads_per_core(std::string_view lscpu) {
  constexpr std::string_view kKey = "Thread(s) per core:";
  const auto place = lscpu.find(kKey);
  if (place == std::string_view::npos) return 0;
  auto rest = lscpu.substr(place + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  int threads = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), threads);
  return std::max(threads, 0);
}

Result<ScratchFile> ScratchFile::write(std::string_view text) {
  const char* folder = std::getenv("TMPDIR");
  auto path = fmt::format("{}/horo-XXXXXX", folder == nullptr || *folder == '\0' ? "/tmp" : folder);
  const UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  if (file.value() < 0) return fail_errno(errno, fmt::format("creating '{}'", path));
  ScratchFile scratch(std::move(path));
  while (!text.empty()) {
    const auto put = ::write(file.value(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno(errno, fmt::format("writing '{}'", scratch.path_));
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return scratch;
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

ScratchFile::~ScratchFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace horo::launcher
