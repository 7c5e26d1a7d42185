// SPDX-License-Identifier: Apache-2.0
// libssh is loaded when a job needs it: loading it and its cryptography takes time that a job on
// this machine alone should not spend. An installation without it uses the program ssh.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "base/result.hpp"

namespace horo::launcher {

#define HORO_LIBSSH_FUNCTIONS(X)     \
  X(ssh_new)                         \
  X(ssh_free)                        \
  X(ssh_disconnect)                  \
  X(ssh_options_set)                 \
  X(ssh_set_blocking)                \
  X(ssh_connect)                     \
  X(ssh_get_error)                   \
  X(ssh_get_poll_flags)              \
  X(ssh_set_callbacks)               \
  X(ssh_session_is_known_server)     \
  X(ssh_known_hosts_parse_line)      \
  X(ssh_knownhosts_entry_free)       \
  X(ssh_session_update_known_hosts)  \
  X(ssh_get_server_publickey)        \
  X(ssh_get_publickey_hash)          \
  X(ssh_get_fingerprint_hash)        \
  X(ssh_clean_pubkey_hash)           \
  X(ssh_string_free_char)            \
  X(ssh_key_free)                    \
  X(ssh_key_type)                    \
  X(ssh_key_type_to_char)            \
  X(ssh_userauth_none)               \
  X(ssh_userauth_list)               \
  X(ssh_userauth_publickey_auto)     \
  X(ssh_channel_new)                 \
  X(ssh_channel_free)                \
  X(ssh_channel_open_session)        \
  X(ssh_channel_request_exec)        \
  X(ssh_channel_read_nonblocking)    \
  X(ssh_channel_write)               \
  X(ssh_channel_window_size)         \
  X(ssh_channel_send_eof)            \
  X(ssh_channel_request_send_signal) \
  X(ssh_channel_is_eof)              \
  X(ssh_channel_is_closed)           \
  X(ssh_channel_get_exit_status)

/// The library's functions under their own names.
struct Libssh {
#define HORO_LIBSSH_MEMBER(name) decltype(&::name) name = nullptr;
  HORO_LIBSSH_FUNCTIONS(HORO_LIBSSH_MEMBER)
#undef HORO_LIBSSH_MEMBER
};

/// Loads the library at the first call. Fails: not_found (with the loader's message). Thread: any.
Result<const Libssh*> load_libssh();

}  // namespace horo::launcher
