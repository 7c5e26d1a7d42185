// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/timeline_input.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <zlib.h>

#include "timeline/record/timeline_file.hpp"

namespace horo::timeline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLookAhead = 4096;
/// A read of at least twice this size from an uncompressed file goes directly to the caller's
/// buffer.
constexpr unsigned kBuffer = 64U << 10U;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;

gzFile handle(void* file) {
  return static_cast<gzFile>(file);
}

}  // namespace

Result<std::unique_ptr<TimelineInput>> TimelineInput::open(const std::string& path) {
  const int fd = path == "-" ? dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_errno(errno, path);
  auto* const file = gzdopen(fd, "rb");
  if (file == nullptr) {
    close(fd);
    return fail(Errc::out_of_memory, "no memory to read '{}'", path);
  }
  gzbuffer(file, kBuffer);
  std::unique_ptr<TimelineInput> input(new TimelineInput(path, file));
  HORO_TRY_STATUS(input->look());
  return input;
}

TimelineInput::~TimelineInput() {
  gzclose(handle(file_));
}

Status TimelineInput::look() {
  std::string first(kLookAhead, '\0');
  HORO_TRY(const auto got, read(first.data(), first.size()));
  first.resize(got);
  ahead_ = std::move(first);
  if (ahead_.empty()) return fail(Errc::invalid_argument, "'{}' is empty", path_);
  if (std::string_view(ahead_).starts_with(kFileMagic.substr(0, ahead_.size()))) {
    format_ = InputFormat::horo;
    return {};
  }
  const auto at = ahead_.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string::npos || (ahead_[at] != '[' && ahead_[at] != '{')) {
    return fail(Errc::invalid_argument, "'{}' is neither a timeline of horo nor a trace in JSON",
                path_);
  }
  return {};
}

Result<std::size_t> TimelineInput::read(char* to, std::size_t room) {
  if (!ahead_.empty()) {
    const auto count = ahead_.copy(to, room);
    ahead_.erase(0, count);
    return count;
  }
  const auto got = gzread(handle(file_), to, static_cast<unsigned>(std::min(room, kMostAtOnce)));
  if (got >= 0) return static_cast<std::size_t>(got);
  int code = 0;
  const char* text = gzerror(handle(file_), &code);
  if (code == Z_ERRNO) return fail_errno(errno, path_);
  // The compressed file was cut; everything before the cut has been returned already.
  if (code == Z_BUF_ERROR) return std::size_t{0};
  return fail(Errc::io, "'{}': {}", path_, text);
}

Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (auto at = fs::recursive_directory_iterator(path, error);
         !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (at->path().extension() == ".timeline" && at->is_regular_file(error))
        found.push_back(at->path().string());
    }
    if (error) return fail_errno(error.value(), path);
    if (found.empty()) {
      return fail(Errc::not_found,
                  "the folder '{}' has no *.timeline; name the files of other formats one by one",
                  path);
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace horo::timeline
