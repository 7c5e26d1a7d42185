// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/store_requests.hpp"

#include <algorithm>
#include <array>
#include <thread>

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

/// The collector's reply: `code` is 0, or an error's, with its message as `text`.
struct Reply {
  std::uint32_t code = 0;
  std::string text;

  static void fields(auto& field, auto& m) {
    field("code", m.code, wire::Fixed{});
    field("text", m.text, kText);
  }

  static std::string_view check(const Reply& m) {
    return m.code <= static_cast<std::uint32_t>(Errc::cancelled) ? "" : "has an unknown code";
  }
};

std::string reply_of(Errc code, std::string_view text) {
  return encode_fields(Reply{.code = static_cast<std::uint32_t>(code), .text = std::string(text)});
}

}  // namespace

Result<kv::Client> connect_in_time(const JobStore& store, const Deadline& deadline) {
  for (;;) {
    auto client = store.connect(deadline);
    if (client || client.error().code != Errc::unavailable) return client;
    const auto now = SteadyClock::instance().now();
    if (deadline.expired(now)) {
      return fail(Errc::timed_out, "{}; has rank 0 called horo_init?", client.error().message);
    }
    std::this_thread::sleep_for(std::min<Duration>(kBetweenTries, deadline.left(now)));
  }
}

Result<std::string> send_request(kv::Client& client, std::string_view topic, std::string_view text,
                                 const Deadline& deadline) {
  HORO_TRY(const auto number, client.add(fmt::format("{}/count", topic), 1, deadline));
  HORO_TRY_STATUS(client.set(request_key(topic, number), text, deadline));
  const auto key = answer_key(topic, number);
  // The collector's time is up at about the same moment, and it knows which ranks are missing.
  auto bytes =
      client.get(key, deadline.is_never() ? deadline : Deadline::at(deadline.when() + kReplyTime));
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

Result<RequestCollector::Request> RequestCollector::next(kv::Client& client,
                                                         const Deadline& deadline) {
  const auto number = taken_ + 1;
  const auto key = request_key(topic_, number);
  HORO_TRY(auto text, client.get(key, deadline));
  taken_ = number;
  static_cast<void>(client.erase(std::array{key}, deadline));
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
