// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/assembly.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "runtime/bootstrap/wire.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kPause = std::chrono::milliseconds(50);
constexpr Duration kLastWords = std::chrono::seconds(1);

const Clock& steady() {
  return SteadyClock::instance();
}

std::string card_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/card/{}", topic, number);
}

std::string answer_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/answer/{}", topic, number);
}

std::string seen_key(std::string_view topic, std::int64_t number) {
  return fmt::format("{}/seen/{}", topic, number);
}

/// An answer, or a refusal with code and words.
std::string envelope(Errc code, std::string_view text) {
  Writer out;
  out.u32(static_cast<std::uint32_t>(code)).text(text);
  return std::move(out).take();
}

}  // namespace

Result<kv::Client> connect_in_time(const Store& store, const Deadline& deadline) {
  for (;;) {
    auto client = store.connect(deadline);
    if (client || client.error().code != Errc::unavailable) return client;
    const auto now = steady().now();
    if (deadline.expired(now)) {
      return fail(Errc::timed_out, "{}; has rank 0 called horo_init?", client.error().message);
    }
    std::this_thread::sleep_for(std::min<Duration>(kPause, deadline.left(now)));
  }
}

Result<std::string> attend(kv::Client& client, std::string_view topic, std::string_view card,
                           const Deadline& deadline) {
  HORO_TRY(const auto number, client.add(fmt::format("{}/count", topic), 1, deadline));
  HORO_TRY_STATUS(client.set(card_key(topic, number), card, deadline));
  const auto key = answer_key(topic, number);
  // The organiser's time is up at about the same moment, and it knows who is missing.
  auto bytes =
      client.get(key, deadline.is_never() ? deadline : Deadline::at(deadline.when() + kLastWords));
  if (!bytes) {
    if (bytes.error().code != Errc::timed_out) return bytes;
    return fail(Errc::timed_out,
                "rank 0 has not answered; raise HORO_START_TIMEOUT if ranks are only slow");
  }
  static_cast<void>(client.erase(std::array{key}, Deadline::in(steady(), kLastWords)));
  Reader in(*bytes);
  const auto code = in.u32();
  auto text = in.text();
  if (!in.complete() || code > static_cast<std::uint32_t>(Errc::cancelled))
    return fail(Errc::protocol, "rank 0 answered with something else");
  if (code != 0) {
    static_cast<void>(client.set(seen_key(topic, number), "", Deadline::in(steady(), kLastWords)));
    return fail(static_cast<Errc>(code), "{}", text);
  }
  return text;
}

Result<Organiser::Card> Organiser::next(kv::Client& client, const Deadline& deadline) {
  const auto number = taken_ + 1;
  const auto key = card_key(topic_, number);
  HORO_TRY(auto text, client.get(key, deadline));
  taken_ = number;
  static_cast<void>(client.erase(std::array{key}, deadline));
  return Card{number, std::move(text)};
}

Status Organiser::answer(kv::Client& client, const Card& card, std::string_view text,
                         const Deadline& deadline) {
  return client.set(answer_key(topic_, card.number), envelope(Errc::ok, text), deadline);
}

void Organiser::refuse(kv::Client& client, const std::vector<Card>& cards, const Error& error) {
  const auto soon = Deadline::in(steady(), kLastWords);
  std::vector<std::string> seen;
  for (const auto& card : cards) {
    static_cast<void>(
        client.set(answer_key(topic_, card.number), envelope(error.code, error.message), soon));
    seen.push_back(seen_key(topic_, card.number));
  }
  // The store may end with this process: not before they have read it.
  static_cast<void>(client.wait(seen, soon));
}

}  // namespace horo::runtime::bootstrap
