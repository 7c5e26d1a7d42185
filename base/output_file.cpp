// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.hpp"

#include <cerrno>
#include <fcntl.h>

namespace horo {

Result<UniqueFd> open_output_file(std::string_view what, const std::string& path) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!file && errno == ENXIO) {
    return fail(Errc::unavailable,
                "the {} file '{}' is a pipe that nothing reads; start its reader first", what,
                path);
  }
  if (!file) return fail_errno(errno, fmt::format("opening the {} file '{}'", what, path));
  // Only the opening must not wait. A reader may take its time.
  fcntl(file.value(), F_SETFL, fcntl(file.value(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace horo
