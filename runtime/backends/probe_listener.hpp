// SPDX-License-Identifier: Apache-2.0
// A TCP port that answers clients that know its secret, to find out which addresses reach a host.
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
/// begins with the first half of the secret it answers the second half, to all others nothing.
class ProbeListener {
 public:
  static constexpr std::size_t kSecretBytes = 32;

  /// Fails: io, unavailable.
  static Result<std::unique_ptr<ProbeListener>> open();
  ~ProbeListener();
  ProbeListener(const ProbeListener&) = delete;
  ProbeListener& operator=(const ProbeListener&) = delete;

  std::uint16_t port() const { return port_; }

  const std::string& secret() const { return secret_; }

 private:
  ProbeListener(int listener, int stop, std::uint16_t port, std::string secret);
  void serve() const;
  void answer(int connection) const;

  const int listener_;
  const int stop_;  ///< An eventfd.
  const std::uint16_t port_;
  const std::string secret_;
  std::thread thread_;
};

/// The first of `addresses` at which a probe listener with this secret answers within a second;
/// empty when none does. All are tried at the same time.
std::string first_answering(std::span<const std::string> addresses, std::uint16_t port,
                            const std::string& secret);

}  // namespace horo::runtime
