// SPDX-License-Identifier: Apache-2.0
// A rank that only calls bootstrap: it prints the result and tries the store. Argument: rounds=N.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/board_header.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace {

using namespace horo;

Deadline soon() {
  const char* text = std::getenv("MEETING_SECONDS");
  return Deadline::in(SteadyClock::instance(),
                      std::chrono::seconds(text != nullptr ? std::atoi(text) : 30));
}

void print(const runtime::bootstrap::Meeting& meeting) {
  const auto& me = meeting.identity;
  auto text =
      fmt::format("rank {}/{} local {}/{} cross {}/{} epoch {} hosts", me.rank, me.size,
                  me.local_rank, me.local_size, me.cross_rank, me.cross_size, meeting.epoch);
  for (const auto& host : meeting.hosts) {
    std::string ranks;
    for (const auto rank : host.ranks) ranks += fmt::format("{}{}", ranks.empty() ? "" : ",", rank);
    text += fmt::format(" {}[{}]", std::getenv("MEETING_ADDRESSES") != nullptr ? host.address : "",
                        ranks);
  }
  std::puts(text.c_str());
  std::fflush(stdout);
}

/// Every rank stores a key and waits for all keys.
Status use(const runtime::bootstrap::Meeting& meeting) {
  if (meeting.store == nullptr) return {};
  HORO_TRY(auto client, meeting.store->connect(soon()));
  std::vector<std::string> keys;
  for (int rank = 0; rank < meeting.identity.size; ++rank)
    keys.push_back(fmt::format("test/{}/{}", meeting.epoch, rank));
  HORO_TRY_STATUS(client.set(keys[meeting.identity.rank.index()], "here", soon()));
  return client.wait(keys, soon());
}

Status check_board(const runtime::bootstrap::Meeting& meeting) {
  HORO_TRY(const auto header, map_board_header(meeting.board.value()));
  const bool good = header->local_size == static_cast<std::uint32_t>(meeting.identity.local_size) &&
                    header->epoch == meeting.epoch.value();
  header->slot(meeting.identity.local_rank).state.store(RankState::detached);
  unmap_board_header(header);
  return good ? Status{} : fail(Errc::mismatch, "the board is not the expected one");
}

Status run(runtime::bootstrap::Bootstrap& bootstrap, int argc, char** argv) {
  int rounds = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "rounds=", 7) == 0) rounds = std::atoi(argv[i] + 7);
  }
  for (int i = 0; i < rounds; ++i) {
    HORO_TRY(const auto meeting,
             bootstrap.meet([](const char* name) -> const char* { return std::getenv(name); },
                            {.deadline = soon()}));
    if (i == rounds - 1) print(meeting);
    HORO_TRY_STATUS(use(meeting));
    HORO_TRY_STATUS(check_board(meeting));
    // Rank 0 runs the store, so it leaves last.
    if (meeting.store == nullptr) continue;
    HORO_TRY(auto client, meeting.store->connect(soon()));
    const auto done = fmt::format("test/{}/done", meeting.epoch);
    HORO_TRY(const auto count, client.add(done, 1, soon()));
    if (count == meeting.identity.size) HORO_TRY_STATUS(client.set(done + "/all", "", soon()));
    if (meeting.identity.rank == Rank{0})
      HORO_TRY_STATUS(client.wait(std::vector{done + "/all"}, soon()));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  runtime::bootstrap::Bootstrap bootstrap;
  const auto status = run(bootstrap, argc, argv);
  bootstrap.retire();
  if (status) return 0;
  std::fprintf(stderr, "%s: %s\n", std::string(name(status.error().code)).c_str(),
               status.error().message.c_str());
  return 10 + static_cast<int>(status.error().code);
}
