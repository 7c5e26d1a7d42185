// SPDX-License-Identifier: Apache-2.0
// The C ABI of elastic jobs: which generation this process is in, and whether another one is near.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/board_header.hpp"
#include "base/codec/content_digest.hpp"
#include "runtime/capi/capi_support.hpp"

namespace horo::runtime::capi {

bool is_elastic(const bootstrap::Lookup& lookup) {
  const char* elastic = lookup("HORO_ELASTIC");
  const char* board = lookup("HORO_BOARD_FD");
  return elastic != nullptr && std::string_view(elastic) == "1" && board != nullptr &&
         std::string_view(board) != "-1";
}

std::string trace_of(const std::string& path, std::uint64_t generation) {
  if (generation <= 1 || path.empty() || path == kNoTraceYet) return path;
  const auto name = path.find_last_of('/') + 1;  // 0 where there is no folder.
  const auto dot = path.find_last_of('.');
  const auto at = dot == std::string::npos || dot <= name ? path.size() : dot;
  return fmt::format("{}.g{}{}", path.substr(0, at), generation, path.substr(at));
}

}  // namespace horo::runtime::capi

namespace {

using horo::Errc;
using horo::runtime::Session;
using horo::runtime::bootstrap::Membership;
using horo::runtime::capi::guarded;
using horo::runtime::capi::process;
using horo::runtime::capi::report;
using horo::runtime::capi::with_session;

/// For horo_resumed: the training waits for it.
constexpr horo::Duration kToTell = std::chrono::seconds(1);
constexpr double kMostSeconds = 1e9;

/// Null while this process is in no job.
const Membership* membership() {
  const auto& p = process();
  if (p.forked.load(std::memory_order_relaxed) || !p.joined.load(std::memory_order_acquire))
    return nullptr;
  return &p.session.load(std::memory_order_acquire)->membership();
}

}  // namespace

extern "C" {

HORO_API int horo_is_elastic(void) {
  const auto* const known = membership();
  if (known != nullptr) return known->generation != 0 ? 1 : 0;
  return horo::runtime::capi::is_elastic(
             [](const char* name) -> const char* { return std::getenv(name); })
             ? 1
             : 0;
}

HORO_API int64_t horo_generation(void) {
  const auto* const known = membership();
  return known == nullptr ? -1 : static_cast<int64_t>(known->generation);
}

HORO_API int horo_survivors(void) {
  const auto* const known = membership();
  return known == nullptr ? -1 : known->survivors;
}

HORO_API horo_status horo_pending_change(uint64_t* sequence, uint32_t* flags) {
  return with_session([&](Session& session) {
    if (sequence == nullptr || flags == nullptr) {
      return report(horo::fail(Errc::invalid_argument,
                               "horo_pending_change: the pointer for the number or for the flags "
                               "is null"));
    }
    *sequence = 0;
    *flags = 0;
    const auto& known = session.membership();
    if (known.agents == nullptr) return HORO_OK;
    const auto notice = horo::notice_of(*known.agents);
    if (notice.sequence <= known.notice) return HORO_OK;
    *sequence = notice.sequence;
    *flags = notice.flags;
    return HORO_OK;
  });
}

HORO_API horo_status horo_resumed(double stood_still, int64_t repeated) {
  if (!(stood_still >= 0) || stood_still > kMostSeconds || repeated < -1) {
    return report(horo::fail(Errc::invalid_argument,
                             "horo_resumed: {} seconds and {} steps must be at least 0, or -1 for "
                             "unknown steps",
                             stood_still, repeated));
  }
  return guarded([stood_still, repeated] {
    auto& p = process();
    if (!p.joined.load(std::memory_order_acquire))
      return report(horo::fail(Errc::not_initialized, "this process is in no job; call horo_init"));
    if (horo_generation() == 0 || horo_rank() != 0) return HORO_OK;
    const horo::MutexLock lock(p.life);
    const auto paused =
        std::chrono::duration_cast<horo::Duration>(std::chrono::duration<double>(stood_still));
    return report(p.bootstrap.resumed(paused, repeated,
                                      horo::Deadline::in(horo::SteadyClock::instance(), kToTell)));
  });
}

HORO_API horo_status horo_digest(const void* data, size_t bytes, unsigned char digest[16]) {
  if (digest == nullptr || (data == nullptr && bytes != 0)) {
    return report(horo::fail(Errc::invalid_argument,
                             "horo_digest: the pointer for the data or for the digest is null"));
  }
  const auto made = horo::digest_of({static_cast<const std::byte*>(data), bytes});
  std::memcpy(digest, made.data(), sizeof(made));
  return HORO_OK;
}

}  // extern "C"
