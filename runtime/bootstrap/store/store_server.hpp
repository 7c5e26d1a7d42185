// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/kv/address.hpp"
#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "base/result.hpp"

namespace horo::runtime::bootstrap {

/// The job's key-value server inside rank 0, where no launcher has one, on a thread of its own.
/// Thread: owner.
class StoreServer {
 public:
  /// Fails: unavailable (port taken, address not of this machine), io.
  static Result<std::unique_ptr<StoreServer>> start(const kv::Secret& secret,
                                                    const kv::Address& listen);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// With the port that the system chose, if none was asked for.
  const kv::Address& address() const { return address_; }

 private:
  StoreServer(std::unique_ptr<Loop> loop, std::unique_ptr<kv::Server> server);

  std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> server_;
  kv::Address address_;
  std::thread thread_;
};

}  // namespace horo::runtime::bootstrap
