// SPDX-License-Identifier: Apache-2.0
// How a host is reached by ssh: as the user's configuration says, by the library where it can do
// that, otherwise by the program ssh.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// Settings of the user that override the configuration.
struct SshWishes {
  int port = 0;               ///< 0: the configuration's.
  std::string identity_file;  ///< Empty: the configuration's.
  std::string program;        ///< Instead of the library; empty: the library where it can.
};

enum class UnknownKeys : std::uint8_t { refuse, accept };

struct SshRoute {
  std::string host;      ///< As the user wrote it: "h1", "eva@h1".
  std::string name;      ///< The name to look up.
  std::string known_as;  ///< The name in the files of known hosts.
  std::uint16_t port = 22;
  std::string user;
  std::vector<std::string> identities;   ///< Private key files, existing or not.
  std::vector<std::string> known_hosts;  ///< Files, the user's own first.
  std::string global_known_hosts;
  std::string jump_host;  ///< The ssh server to log in to first; empty: none.
  UnknownKeys unknown_keys = UnknownKeys::refuse;
  std::string program;  ///< The program to use; `reason` says why. Empty: the library.
  std::string reason;

  friend bool operator==(const SshRoute&, const SshRoute&) = default;
};

/// Replaces "~/" by the home of this process's user, and back. Other paths stay as they are.
std::string expand_home(std::string_view path);
std::string shorten_home(std::string_view path);

/// Reads the output of `ssh -G HOST`; `host` may be "user@host". `exists` says whether a file
/// exists; apart from it the function is pure. Fails: invalid_argument.
Result<SshRoute> parse_ssh_config(const std::string& host, std::string_view text,
                                  const std::function<bool(const std::string&)>& exists);

/// Finds the routes to `hosts`, at least one, in their order. Blocks: for one `ssh -G`, or one per
/// host where the configuration has sections for hosts, until `limit`. Fails: not_found (neither
/// the library nor the program), timed_out, cancelled, invalid_argument (a configuration that ssh
/// refuses).
Result<std::vector<SshRoute>> find_ssh_routes(const std::vector<std::string>& hosts,
                                              const SshWishes& wishes, WaitLimit limit);

/// As find_ssh_routes, by one `ssh -G` per host, several at once. No child of it is left, whatever
/// it returns.
Result<std::vector<SshRoute>> ask_for_each(const std::vector<std::string>& hosts,
                                           const SshWishes& wishes, WaitLimit limit);

/// The command line that starts `remote_command` on the route's host through its program.
std::vector<std::string> ssh_arguments(const SshRoute& route, const SshWishes& wishes,
                                       const std::string& remote_command);

}  // namespace horo::launcher
