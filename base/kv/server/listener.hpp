// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/kv/address.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// A listening TCP socket, non-blocking and close-on-exec. Thread: owner.
class Listener {
 public:
  /// `address.host` is a number, not a name; port 0: the system chooses one.
  /// Fails: invalid_argument (no IP address), unavailable (port taken, not an address of this
  /// machine), permission_denied, io.
  static Result<Listener> open(const Address& address);

  ~Listener();

  Listener(Listener&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}

  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int descriptor() const { return fd_; }

  const Address& address() const { return address_; }  ///< With the actual port.

  /// Returns the next connection, which the caller owns, or -1 when there is none. Skips
  /// connections that ended before they were taken. Fails: resource_exhausted (this process has no
  /// descriptor left), unavailable (the machine has none left), out_of_memory, io.
  Result<int> accept();  // NOLINT(readability-make-member-function-const): it takes from the queue

 private:
  Listener(int fd, Address address) : fd_(fd), address_(std::move(address)) {}

  int fd_;
  Address address_;
};

}  // namespace horo::kv
