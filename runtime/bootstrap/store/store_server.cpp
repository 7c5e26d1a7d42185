// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/store_server.hpp"

#include <csignal>
#include <pthread.h>

#include "base/signals_blocked.hpp"

namespace horo::runtime::bootstrap {

Result<std::unique_ptr<StoreServer>> StoreServer::start(const kv::Secret& secret,
                                                        const kv::Address& listen) {
  HORO_TRY(auto loop, Loop::make(Loop::BrokenPipes::untouched));
  HORO_TRY(auto server, kv::Server::start(*loop, secret, {.listen = {listen}}));
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop), std::move(server)));
}

StoreServer::StoreServer(std::unique_ptr<Loop> loop, std::unique_ptr<kv::Server> server)
    : loop_(std::move(loop)), server_(std::move(server)), address_(server_->addresses().front()) {
  thread_ = start_quiet_thread([this] {
    pthread_setname_np(pthread_self(), "horo-store");
    loop_->run();
  });
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
}

}  // namespace horo::runtime::bootstrap
