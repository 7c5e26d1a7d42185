// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/store_requests.hpp"

#include <algorithm>
#include <array>

#include "runtime/bootstrap/meeting/bootstrap_forms.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kBetweenTries = std::chrono::milliseconds(50);
constexpr Duration kReplyTime = std::chrono::seconds(1);

std::string request_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/card/{}", topic, number);
}

std::string answer_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/answer/{}", topic, number);
}

std::string seen_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/seen/{}", topic, number);
}

std::string open_key(std::string_view topic) {
  return fmt::format("{}/open", topic);
}

/// Published by an open collector.
struct Opening {
  std::uint64_t left_ms = 0;  ///< How long it collects; ~0: no limit.

  static void fields(auto& field, auto& m) { field("left_ms", m.left_ms, wire::Fixed{}); }

  static Opening until(const Deadline& deadline, TimePoint now) {
    if (deadline.is_never()) return {.left_ms = kNoLimit};
    using std::chrono::milliseconds;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline.left(now));
    return {.left_ms = static_cast<std::uint64_t>(std::max(left, milliseconds(0)).count())};
  }

  /// The collector's time is up before that, and it knows which ranks are missing.
  Deadline patience() const {
    constexpr std::uint64_t kMostMs = 1000ULL * 3600 * 24 * 365;
    if (left_ms == kNoLimit) return Deadline::never();
    const std::chrono::milliseconds left(std::min(left_ms, kMostMs));
    return Deadline::in(SteadyClock::instance(), left + kReplyTime);
  }

 private:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
};

/// The collector's reply: `code` is 0, or an error's, with its message as `text`.
struct Reply {
  std::uint32_t code = 0;
  std::string text;

  static void fields(auto& field, auto& m) {
    field("code", m.code, wire::Fixed{});
    field("text", m.text, kText);
  }

  static std::string_view check(const Reply& m) {
    return m.code <= static_cast<std::uint32_t>(kLastErrc) ? "" : "has an unknown code";
  }
};

std::string reply_of(Errc code, std::string_view text) {
  return encode_fields(Reply{.code = static_cast<std::uint32_t>(code), .text = std::string(text)});
}

}  // namespace

Result<kv::Client> connect_in_time(const JobStore& store, const WaitLimit& limit) {
  const auto& deadline = limit.deadline;
  for (;;) {
    auto client = store.connect(deadline);
    if (client || client.error().code != Errc::unavailable) return client;
    if (deadline.expired(SteadyClock::instance().now())) {
      return fail(Errc::timed_out, "{}; has rank 0 called horo_init?", client.error().message);
    }
    if (!pause_for(kBetweenTries, limit)) {
      return fail(Errc::cancelled, "this meeting of ranks was given up; {}",
                  client.error().message);
    }
  }
}

namespace {

/// Ranks start at different times, and the collector may have begun to collect later than this rank
/// has begun to wait.
Result<Deadline> await_collector(kv::Client& client, std::string_view topic,
                                 const WaitLimit& limit) {
  const auto text = client.get(open_key(topic), limit);
  if (!text) {
    if (text.error().code != Errc::timed_out) return Failure(text.error());
    return fail(
        Errc::timed_out,
        "rank 0 is not in horo_init, or has left it; raise HORO_START_TIMEOUT if it is only "
        "slow");
  }
  HORO_TRY(const auto opening, decode_fields<Opening>(as_bytes(*text), "rank 0's opening"));
  return opening.patience();
}

}  // namespace

Result<std::string> send_request(kv::Client& client, std::string_view topic, std::string_view text,
                                 const WaitLimit& limit) {
  HORO_TRY(const auto patience, await_collector(client, topic, limit));
  HORO_TRY(const auto number, client.add(fmt::format("{}/count", topic), 1, patience));
  HORO_TRY_STATUS(client.set(request_key(topic, number), text, patience));
  const auto key = answer_key(topic, number);
  auto bytes = client.get(key, {patience, limit.cancel});
  if (!bytes) {
    if (bytes.error().code != Errc::timed_out) return bytes;
    return fail(Errc::timed_out,
                "rank 0 has not answered; raise HORO_START_TIMEOUT if ranks are only slow");
  }
  static_cast<void>(
      client.erase(std::array{key}, Deadline::in(SteadyClock::instance(), kReplyTime)));
  HORO_TRY(auto reply, decode_fields<Reply>(as_bytes(*bytes), "rank 0's reply"));
  if (reply.code == 0) return std::move(reply.text);
  static_cast<void>(
      client.set(seen_key(topic, number), "", Deadline::in(SteadyClock::instance(), kReplyTime)));
  return fail(static_cast<Errc>(reply.code), "{}", reply.text);
}

Status RequestCollector::open(kv::Client& client, const Deadline& deadline) {
  const auto opening = Opening::until(deadline, SteadyClock::instance().now());
  return client.set(open_key(topic_), encode_fields(opening), deadline);
}

void RequestCollector::close(kv::Client& client) {
  static_cast<void>(client.erase(std::array{open_key(topic_)},
                                 Deadline::in(SteadyClock::instance(), kReplyTime)));
}

Result<RequestCollector::Request> RequestCollector::next(kv::Client& client,
                                                         const WaitLimit& limit) {
  const auto number = taken_ + 1;
  const auto key = request_key(topic_, number);
  HORO_TRY(auto text, client.get(key, limit));
  taken_ = number;
  static_cast<void>(client.erase(std::array{key}, limit.deadline));
  return Request{number, std::move(text)};
}

Status RequestCollector::reply(kv::Client& client, const Request& request, std::string_view text,
                               const Deadline& deadline) {
  return client.set(answer_key(topic_, request.number), reply_of(Errc::ok, text), deadline);
}

void RequestCollector::refuse(kv::Client& client, const std::vector<Request>& requests,
                              const Error& error) {
  const auto soon = Deadline::in(SteadyClock::instance(), kReplyTime);
  std::vector<std::string> seen;
  for (const auto& request : requests) {
    static_cast<void>(
        client.set(answer_key(topic_, request.number), reply_of(error.code, error.message), soon));
    seen.push_back(seen_key(topic_, request.number));
  }
  // The store may end with this process: wait until all have read the reply.
  static_cast<void>(client.wait(seen, soon));
}

}  // namespace horo::runtime::bootstrap
