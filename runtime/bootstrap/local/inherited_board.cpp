// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/inherited_board.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>

#include "base/board_header.hpp"
#include "base/version.hpp"

namespace horo::runtime::bootstrap {

Result<UniqueFd> open_inherited_board(const WorkerIdentity& identity) {
  if (identity.launcher_version != version_code()) {
    return fail(Errc::version_mismatch,
                "the launcher has version code {}, this libhoro is {} (code {}); install one "
                "version on all hosts",
                identity.launcher_version, version(), version_code());
  }
  const auto matches = [&identity](int fd) {
    auto header = map_board_header(fd);
    if (!header) return false;
    const bool same = (*header)->nonce == identity.board_nonce;
    unmap_board_header(*header);
    return same;
  };
  UniqueFd inherited(fcntl(identity.board_fd, F_DUPFD_CLOEXEC, 3));
  if (inherited && matches(inherited.value())) {
    fcntl(identity.board_fd, F_SETFD, FD_CLOEXEC);  // Not for the programs that this rank starts.
    return inherited;
  }
  const auto path = fmt::format("/proc/{}/fd/{}", identity.agent_pid, identity.board_fd);
  UniqueFd lent(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!lent) {
    return fail(Errc::unavailable,
                "the board of this host is not descriptor {} of this process and {} cannot be "
                "opened ({}); start the rank "
                "without a wrapper that closes descriptors or changes the user",
                identity.board_fd, path, std::strerror(errno));
  }
  if (matches(lent.value())) return lent;
  return fail(
      Errc::protocol,
      "{} is not the board of this job; HORO_BOARD_FD and HORO_BOARD_NONCE come from another job",
      path);
}

}  // namespace horo::runtime::bootstrap
