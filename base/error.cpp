// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>
#include <system_error>

#include "base/result.hpp"

namespace horo {

std::string_view name(Errc code) {
  switch (code) {
    case Errc::ok:
      return "ok";
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::not_found:
      return "not_found";
    case Errc::unavailable:
      return "unavailable";
    case Errc::timed_out:
      return "timed_out";
    case Errc::io:
      return "io";
    case Errc::out_of_memory:
      return "out_of_memory";
    case Errc::resource_exhausted:
      return "resource_exhausted";
    case Errc::mismatch:
      return "mismatch";
    case Errc::duplicate:
      return "duplicate";
    case Errc::peer_lost:
      return "peer_lost";
    case Errc::shut_down:
      return "shut_down";
    case Errc::not_initialized:
      return "not_initialized";
    case Errc::forked:
      return "forked";
    case Errc::unsupported:
      return "unsupported";
    case Errc::protocol:
      return "protocol";
    case Errc::permission_denied:
      return "permission_denied";
    case Errc::version_mismatch:
      return "version_mismatch";
    case Errc::in_progress:
      return "in_progress";
    case Errc::cancelled:
      return "cancelled";
    case Errc::removed:
      return "removed";
  }
  return "unknown";
}

Failure fail_errno(int errno_value, std::string_view what) {
  Errc code = Errc::io;
  switch (errno_value) {
    case ENOENT:
      code = Errc::not_found;
      break;
    case EACCES:
    case EPERM:
      code = Errc::permission_denied;
      break;
    case ENOMEM:
      code = Errc::out_of_memory;
      break;
    case EMFILE: {
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      return fail(
          Errc::unavailable,
          "{}: this process may have {} open descriptors, and none is left; raise ulimit -n", what,
          limit.rlim_cur);
    }
    case EAGAIN:
    case ENFILE:
      code = Errc::unavailable;
      break;
    case ETIMEDOUT:
      code = Errc::timed_out;
      break;
    default:
      break;
  }
  return fail(code, "{}: {}", what, std::generic_category().message(errno_value));
}

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "horo: internal error: %s:%d: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace horo
