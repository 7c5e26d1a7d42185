// SPDX-License-Identifier: Apache-2.0
// A rank under `horo run` that finds the others as libhoro does: with the address from its
// environment and the secret from the inherited board. Exits with 0 when every rank has read the
// keys of all others.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/board_header.hpp"
#include "base/deadline.hpp"
#include "base/kv/client.hpp"
#include "base/worker_env.hpp"

namespace {

using horo::Status;

horo::Deadline soon() {
  return horo::Deadline::in(horo::SteadyClock::instance(), std::chrono::seconds(30));
}

Status meet() {
  HORO_TRY(const auto identity, horo::read_worker_identity(&std::getenv));
  if (!identity) return horo::fail(horo::Errc::not_found, "this is no rank; start it by horo run");
  HORO_TRY(const auto board, horo::map_board_header(identity->board_fd));
  const auto secret = board->secret;
  horo::unmap_board_header(board);
  HORO_TRY(auto client, horo::kv::Client::connect(identity->rendezvous, secret, soon()));
  std::vector<std::string> keys;
  for (int rank = 0; rank < identity->size; ++rank) keys.push_back(fmt::format("rank/{}", rank));
  HORO_TRY_STATUS(
      client.set(keys[identity->rank.index()], fmt::format("{}", identity->rank), soon()));
  HORO_TRY_STATUS(client.wait(keys, soon()));
  for (int rank = 0; rank < identity->size; ++rank) {
    HORO_TRY(const auto value, client.get(keys[static_cast<std::size_t>(rank)], soon()));
    if (value != std::to_string(rank)) {
      return horo::fail(horo::Errc::mismatch, "rank {} has set '{}'", rank, value);
    }
  }
  // No rank exits before the last one has read the keys.
  HORO_TRY(const auto seen, client.add("seen", 1, soon()));
  if (seen == identity->size) HORO_TRY_STATUS(client.set("all", "", soon()));
  HORO_TRY_STATUS(client.wait(std::vector<std::string>{"all"}, soon()));
  auto stranger = horo::kv::Client::connect(identity->rendezvous, {}, soon());
  if (stranger) return horo::fail(horo::Errc::permission_denied, "a secret of zeros was accepted");
  return {};
}

}  // namespace

int main() {
  const auto status = meet();
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
