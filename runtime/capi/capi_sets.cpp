// SPDX-License-Identifier: Apache-2.0
// The C ABI's process sets.
#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/capi/capi_support.hpp"

using horo::Errc;
using horo::Rank;
using horo::SetId;
using horo::runtime::Session;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

namespace {

/// Reads a number of the set; -1 when the set or the session does not exist.
template <typename Read>
int number_of(horo_set set, Read read) {
  int number = -1;
  const auto& p = process();
  if (p.forked.load(std::memory_order_relaxed) || !p.joined.load(std::memory_order_acquire))
    return number;
  auto& session = *p.session.load(std::memory_order_acquire);
  if (const auto* found = session.sets().find(SetId{set}); found != nullptr)
    number = read(session, *found);
  return number;
}

/// The name as a text that lives as long as the program.
const char* backend_name(std::string_view name) {
  for (const auto* known : {"shm", "tcp", "gloo", "openmpi", "mpich"}) {
    if (name == known) return known;
  }
  return "other";
}

}  // namespace

extern "C" {

HORO_API horo_status horo_add_process_set(const int* ranks, size_t n, horo_set* set) {
  return with_session([&](Session& session) {
    if (set == nullptr || (ranks == nullptr && n != 0)) {
      return report(
          horo::fail(Errc::invalid_argument,
                     "horo_add_process_set: the pointer to the ranks or to the result is null"));
    }
    std::vector<Rank> members;
    for (size_t i = 0; i < n; ++i) members.emplace_back(ranks[i]);
    auto id = session.add_set(std::move(members));
    if (!id) return report(id.error());
    *set = id->value();
    return HORO_OK;
  });
}

HORO_API horo_status horo_remove_process_set(horo_set set) {
  return with_session([&](Session& session) { return report(session.remove_set(SetId{set})); });
}

HORO_API int horo_process_set_rank(horo_set set) {
  return number_of(set, [](const Session& session, const horo::runtime::ProcessSet& found) {
    return found.rank_of(session.identity().rank);
  });
}

HORO_API int horo_process_set_size(horo_set set) {
  return number_of(set, [](const Session&, const horo::runtime::ProcessSet& found) {
    return static_cast<int>(found.ranks.size());
  });
}

HORO_API horo_status horo_process_set_ranks(horo_set set, int* ranks) {
  return with_session([&](Session& session) {
    const auto* found = session.sets().find(SetId{set});
    if (found == nullptr)
      return report(horo::fail(Errc::not_found, "there is no process set {}", set));
    if (ranks == nullptr)
      return report(horo::fail(Errc::invalid_argument, "the pointer for the ranks is null"));
    for (const auto rank : found->ranks) *ranks++ = rank.value();
    return HORO_OK;
  });
}

HORO_API size_t horo_process_sets(horo_set* sets, size_t room) {
  size_t count = 0;
  with_session([&](Session& session) {
    for (const auto id : session.sets().ids()) {
      if (sets != nullptr && count < room) sets[count] = id.value();
      ++count;
    }
    return HORO_OK;
  });
  return count;
}

HORO_API const char* horo_process_set_backend(horo_set set) {
  const char* name = nullptr;
  number_of(set, [&name](const Session& session, const horo::runtime::ProcessSet& found) {
    if (found.rank_of(session.identity().rank) >= 0) name = backend_name(found.backends.backend());
    return 0;
  });
  return name;
}

HORO_API horo_status horo_job_key(const char* purpose, unsigned char* key) {
  return with_session([&](Session& session) {
    if (purpose == nullptr || key == nullptr)
      return report(horo::fail(Errc::invalid_argument, "horo_job_key: a pointer is null"));
    // The session stays until the next one begins, so that operations can still be read.
    if (!process().joined.load(std::memory_order_acquire))
      return report(horo::fail(Errc::not_initialized, "horo_job_key: horo_shutdown was called"));
    const auto derived = session.derive_key(purpose);
    if (!derived) return report(derived.error());
    std::copy(derived->begin(), derived->end(), key);
    return HORO_OK;
  });
}

}  // extern "C"
