// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/sealed_channel.hpp"

#include <catch2/catch.hpp>

using namespace horo;                 // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

const kv::Secret kKey = channel_key({1, 2, 3}, Epoch{7});

/// Both ends of one connection in memory.
struct Pair {
  explicit Pair(const kv::Secret& theirs = kKey, std::uint32_t version = kVersion)
      : below(SealedChannel::Side::connects, theirs, kv::Nonce{5}, version),
        above(SealedChannel::Side::accepts, kKey, kv::Nonce{6}) {}

  explicit Pair(kv::Encryption both)
      : below(SealedChannel::Side::connects, kKey, kv::Nonce{5}, kVersion, both),
        above(SealedChannel::Side::accepts, kKey, kv::Nonce{6}, kVersion, both) {}

  /// Moves what is to be sent, as far as the other side takes it; the received payloads.
  static std::vector<std::string> move(SealedChannel& from, SealedChannel& to, Status& status) {
    std::vector<std::string> payloads;
    while (status && !from.output().empty() && to.room() > 0) {
      const auto n = std::min(from.output().size(), to.room());
      const auto bytes = std::string(from.output().substr(0, n));
      from.sent(n);
      to.feed(as_bytes(bytes));
      for (;;) {
        auto payload = to.next();
        if (!payload) status = Failure(payload.error());
        if (!payload || !payload->has_value()) break;
        payloads.push_back(**payload);
      }
    }
    return payloads;
  }

  void shake() {
    for (int i = 0; i < 3; ++i) {
      move(below, above, at_above);
      move(above, below, at_below);
    }
  }

  SealedChannel below;
  SealedChannel above;
  Status at_below;
  Status at_above;
};

}  // namespace

TEST_CASE("after the handshake payloads cross both ways, in order") {
  Pair pair(GENERATE(kv::Encryption::off, kv::Encryption::on));
  pair.shake();
  REQUIRE(pair.below.open());
  REQUIRE(pair.above.open());
  pair.below.send("one");
  pair.below.send(std::string(200000, 'x'));
  pair.above.send("two");
  CHECK(Pair::move(pair.below, pair.above, pair.at_above) ==
        std::vector<std::string>{"one", std::string(200000, 'x')});
  CHECK(Pair::move(pair.above, pair.below, pair.at_below) == std::vector<std::string>{"two"});
}

TEST_CASE("a peer with another secret, epoch or service is refused") {
  for (const auto& key :
       {channel_key({1, 2, 4}, Epoch{7}), channel_key({1, 2, 3}, Epoch{8}), kv::Secret{1, 2, 3}}) {
    Pair pair(key);
    pair.shake();
    REQUIRE_FALSE(pair.at_above);
    CHECK(pair.at_above.error().code == Errc::permission_denied);
    CHECK_FALSE(pair.below.open());
    CHECK(pair.above.output().empty());  // Not even that it was wrong.
  }
}

TEST_CASE("a peer of another version receives our version") {
  Pair pair(kKey, kVersion + 1);
  pair.shake();
  REQUIRE_FALSE(pair.at_above);
  CHECK(pair.at_above.error().code == Errc::version_mismatch);
  Pair::move(pair.above, pair.below, pair.at_below);
  REQUIRE_FALSE(pair.at_below);
  CHECK(pair.at_below.error().code == Errc::version_mismatch);
}

TEST_CASE("a changed, repeated or reflected frame is refused") {
  const auto encryption = GENERATE(kv::Encryption::off, kv::Encryption::on);
  Pair pair(encryption);
  pair.shake();
  pair.below.send("frame");
  const std::string frame(pair.below.output());
  for (std::size_t i = 0; i < frame.size(); ++i) {
    Pair fresh(encryption);
    fresh.shake();
    auto changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    fresh.above.feed(as_bytes(changed));
    const auto payload = fresh.above.next();
    CHECK((!payload || !payload->has_value()));  // Refused, or too short for its claimed length.
  }
  pair.above.feed(as_bytes(frame));
  CHECK(pair.above.next());
  pair.above.feed(as_bytes(frame));
  CHECK_FALSE(pair.above.next());
  pair.below.feed(as_bytes(frame));
  CHECK_FALSE(pair.below.next());
}

TEST_CASE("a payload cannot be read on its way, with and without encryption between ranks") {
  const std::string payload = "the name of a tensor";
  Pair plain(kv::Encryption::off);
  Pair encrypted(kv::Encryption::on);
  for (auto* pair : {&plain, &encrypted}) {
    pair->shake();
    pair->below.send(payload);
  }
  CHECK(plain.below.output().find("tensor") == std::string::npos);
  CHECK(encrypted.below.output().find("tensor") == std::string::npos);
  CHECK(encrypted.below.output().size() == plain.below.output().size());
}

TEST_CASE("bytes of an unknown peer are read no further than the handshake needs") {
  SealedChannel channel(SealedChannel::Side::accepts, kKey, kv::Nonce{6});
  CHECK(channel.room() == 44);
  channel.feed(as_bytes(std::string(44, 'x')));
  CHECK_FALSE(channel.next());
}
