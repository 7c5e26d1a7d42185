// SPDX-License-Identifier: Apache-2.0
// How a host is reached by ssh: what the user's configuration says of it, and whether the library
// can do that or the program has to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// What the user says beside the configuration.
struct SshWishes {
  int port = 0;               ///< 0: the configuration's.
  std::string identity_file;  ///< Empty: the configuration's.
  std::string program;        ///< Instead of the library; empty: the library where it can.
};

enum class UnknownKeys : std::uint8_t { refuse, accept };

struct SshRoute {
  std::string host;      ///< As the user wrote it: "h1", "eva@h1".
  std::string name;      ///< To look up.
  std::string known_as;  ///< In the files of known hosts.
  std::uint16_t port = 22;
  std::string user;
  std::vector<std::string> identities;   ///< Private key files, existing or not.
  std::vector<std::string> known_hosts;  ///< Files, the user's own first.
  std::string global_known_hosts;
  std::string door;  ///< Whose ssh server is logged in to first: a jump host; empty: its own.
  UnknownKeys unknown_keys = UnknownKeys::refuse;
  std::string program;  ///< Not empty: by this program, and `reason` is why.
  std::string reason;
};

/// "~/.ssh/id_rsa" in the home of whose process this is, and back; anything else as it is.
std::string expand_home(std::string_view path);
std::string shorten_home(std::string_view path);

/// What `ssh -G HOST` writes, as a route; `host` may be "user@host". Pure but for `exists`, which
/// says whether a file does. Fails: invalid_argument.
Result<SshRoute> parse_ssh_config(const std::string& host, std::string_view text,
                                  const std::function<bool(const std::string&)>& exists);

/// The routes to `hosts`, in their order, one at least. Blocks: for one `ssh -G`, or one per host
/// where the configuration has sections for hosts, until `deadline`. Fails: not_found (a program
/// that was asked for), timed_out, invalid_argument (what ssh says of a configuration that it
/// refuses).
Result<std::vector<SshRoute>> find_ssh_routes(const std::vector<std::string>& hosts,
                                              const SshWishes& wishes, Deadline deadline);

/// The command line that starts `remote_command` on the route's host through its program.
std::vector<std::string> ssh_arguments(const SshRoute& route, const SshWishes& wishes,
                                       const std::string& remote_command);

}  // namespace horo::launcher
