// SPDX-License-Identifier: Apache-2.0
// Where agents come in that this process has not started itself: a TCP port and the job's secret.
// docs/design/agent-protocol.md has the bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop/loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/mpi/knock.hpp"

namespace horo::launcher {

/// Lets in who knows the secret; everybody else learns nothing. Thread: the loop's.
class Door {
 public:
  /// Takes a connection of somebody who has proven to belong to the job, and what it said.
  using Guest = std::function<void(UniqueFd connection, MpiPlace place)>;

  /// Listens on all of this machine's addresses, or with `here` on loopback only. `guest` runs from
  /// the loop. Fails: unavailable, io.
  static Result<std::unique_ptr<Door>> open(Loop& loop, bool here, Guest guest);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Values of the two variables: "address:port,address:port", and the secret in hexadecimal.
  std::string addresses() const;
  std::string secret() const;

 private:
  class Impl;
  explicit Door(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::launcher
