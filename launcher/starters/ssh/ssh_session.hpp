// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/starters/ssh/known_keys.hpp"
#include "launcher/starters/ssh/libssh.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"

namespace horo::launcher {

/// A connection of libssh with one command on it. It advances in steps that block for cryptography
/// only. Thread: owner.
class SshSession {
 public:
  enum class Progress { waiting, running };

  SshSession(const Libssh& library, const SshRoute& route, std::string address);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  /// Takes ownership of a connected socket.
  Status begin(UniqueFd socket, const std::string& command_line);

  /// Advances with what has arrived. Fails: permission_denied (host key, login), unavailable.
  Result<Progress> advance();

  /// The current step: "key exchange with 10.0.0.3:22".
  std::string step() const;

  /// Whether to wait for the socket to become writable too.
  bool has_unsent() const;

  // Only once running:

  enum class Source : bool { output, errors };

  /// Returns up to `most` bytes that the command wrote, none when there are none now.
  /// Fails: unavailable, when the connection has ended.
  Result<std::string_view> read(Source source, char* buffer, std::size_t most);
  /// The number of bytes that write() takes now.
  std::size_t room() const;
  /// False: the command reads no more. What it wrote before may still arrive.
  Result<bool> write(std::string_view bytes);
  void end_input();
  /// Asks the server to kill the command's process group. Servers do so for a command of ours, not
  /// for one that they have forced on the user.
  void kill_command();
  /// The command has ended, and all that it wrote has been read.
  bool ended() const;
  std::optional<int> exit_code() const;

 private:
  enum class Step { key_exchange, host_key, first_login, login, channel, command, running };

  Result<bool> take_step();
  Status set_options();

  /// True if the host's key is known under that port in one of the files; else `found` says more.
  bool find_host_key(unsigned port, KnownKey& found);
  KnownKey look_up_host_key();
  Status check_host_key();
  Status refuse_unknown(bool other_type);
  std::string fingerprint();
  Result<bool> log_in(int answer);
  Result<bool> finish_step(int code, Step next, std::string_view doing);
  Error login_refused();
  std::string library_error() const;

  const Libssh& lib_;
  const SshRoute route_;
  const std::string address_;  ///< "address:port"
  std::string command_line_;
  UniqueFd socket_;  ///< Until the library owns it.
  ssh_session session_ = nullptr;
  ssh_channel channel_ = nullptr;
  ssh_callbacks_struct callbacks_{};
  Step step_ = Step::key_exchange;
  bool locked_key_ = false;  ///< A key needs a passphrase, for which the user is not asked.
};

}  // namespace horo::launcher
