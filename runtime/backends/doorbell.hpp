// SPDX-License-Identifier: Apache-2.0
// A TCP port that answers whoever knows its secret, to find out which addresses lead to a host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace horo::runtime {

/// Listens on all addresses, with a thread of its own, until it is destroyed. To a connection that
/// begins with the first half of the secret it answers the second half, to others nothing.
class Doorbell {
 public:
  static constexpr std::size_t kSecretBytes = 32;

  /// Fails: io, unavailable.
  static Result<std::unique_ptr<Doorbell>> open();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  std::uint16_t port() const { return port_; }

  const std::string& secret() const { return secret_; }

 private:
  Doorbell(int listener, int stop, std::uint16_t port, std::string secret);
  void serve() const;
  void answer(int connection) const;

  const int listener_;
  const int stop_;  ///< An eventfd.
  const std::uint16_t port_;
  const std::string secret_;
  std::thread thread_;
};

/// Of this host's interfaces that are up: IPv4 first; no loopback, no link-local.
std::vector<std::string> own_addresses();

/// The first of `addresses` at which a doorbell with this secret answers within a second; empty
/// when none does. All are tried at the same time.
std::string first_answering(std::span<const std::string> addresses, std::uint16_t port,
                            const std::string& secret);

}  // namespace horo::runtime
