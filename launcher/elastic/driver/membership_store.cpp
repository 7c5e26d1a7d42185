// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/membership_store.hpp"

#include <utility>

#include "base/elastic/generation_keys.hpp"
#include "base/log.hpp"

namespace horo::launcher {

Result<std::unique_ptr<MembershipStore>> MembershipStore::open(Loop& loop, const kv::Secret& secret,
                                                               ResumedHandler on_resumed) {
  std::unique_ptr<MembershipStore> store(new MembershipStore(std::move(on_resumed)));
  HORO_TRY(store->server_, kv::Server::start(loop, secret, {}));
  // The server belongs to the store, so the handler does not outlive it.
  store->server_->intercept(std::string(elastic::kResumedPrefix),
                            [store = store.get()](std::string_view key, std::string_view value) {
                              store->take_resumed(key, value);
                            });
  return store;
}

void MembershipStore::take_resumed(std::string_view key, std::string_view value) const {
  const auto resumed = elastic::decode_resumed(value);
  if (!resumed || key != elastic::resumed_key(resumed->worker)) {
    log::warn("elastic", "a rank has set '{}' to something that does not tell how training goes on",
              key);
    return;
  }
  on_resumed_(*resumed);
}

Result<std::string> MembershipStore::address_at(const std::string& address) {
  if (address.empty()) return server_->address();
  HORO_TRY(const auto place, server_->listen_also({address, 0}));
  return kv::to_string(place);
}

void MembershipStore::clear_before(std::uint64_t generation) {
  // Ranks of this generation may still erase what they have set. Those that died cannot.
  server_->erase_if([generation](std::string_view key) {
    const auto its = elastic::generation_of_key(key);
    return its && *its < generation;
  });
}

}  // namespace horo::launcher
