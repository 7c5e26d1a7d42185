// SPDX-License-Identifier: Apache-2.0
// Packets with descriptors between processes of one user on one host, over abstract unix sockets:
// names that no file system holds and that vanish with their owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace horo::runtime::bootstrap {

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
};

inline constexpr std::size_t kMostPacketBytes = std::size_t{60} << 10U;
inline constexpr std::size_t kMostDescriptors = 200;  ///< Limit per packet; the kernel's is 253.

/// The abstract name of the socket for the ranks of `meeting_place`. It contains the user and a
/// hash of 128 bits, so that two jobs do not get the same name by chance.
std::string socket_name(std::string_view meeting_place);

/// Non-blocking. Fails: unavailable (the name is in use, or no descriptors are left), io.
Result<UniqueFd> listen_at(const std::string& name);

/// Non-blocking. Fails: not_found (no process listens there yet), unavailable (its queue is full),
/// io.
Result<UniqueFd> connect_to(const std::string& name);

/// Checks that the other side runs as this user. Fails: permission_denied, naming the process and
/// user on the other side.
Status check_peer(int socket);

/// Id of the process that made or connected the other end of `socket`; 0: unknown.
int peer_pid(int socket);

/// A descriptor of this process that tells others of its end. Fails: unsupported (old kernel), io.
Result<UniqueFd> own_pidfd();

/// Blocks: no. Fails: peer_lost (closed), unavailable (its buffer is full), io.
Status send_packet(int socket, std::string_view bytes, const std::vector<int>& descriptors = {});

/// Errc::cancelled, because the limit's wait was cancelled.
Failure given_up();

/// The next packet; in_progress when there is none. Fails: peer_lost (closed), unavailable
/// (this process has no descriptors left; names the limit), protocol, io.
Result<Packet> receive_packet(int socket);

}  // namespace horo::runtime::bootstrap
