// SPDX-License-Identifier: Apache-2.0
// The keys of a host in all its files of known hosts. libssh itself reads one file at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/starters/ssh/libssh.hpp"

namespace horo::launcher {

inline constexpr std::uint16_t kUsualSshPort = 22;

using KnownKey = enum ssh_known_hosts_e;

/// The answer that counts of two files: a changed key before one of another type, before an error,
/// before an unknown host. A further file that is missing takes nothing back. Pure.
KnownKey graver(KnownKey one, KnownKey other);

/// The types of host keys to ask a server for, in the form of SSH_OPTIONS_HOSTKEYS. Types by which
/// `host` is known in any of `files` come first: a server has several keys, and shows the one of
/// the first type that it has. Empty: none of the files knows the host. Files that are missing and
/// lines that make no sense are skipped. Blocks: for files.
std::string wanted_key_types(const Libssh& library, const std::vector<std::string>& files,
                             const std::string& host, std::uint16_t port);

}  // namespace horo::launcher
