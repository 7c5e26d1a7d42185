// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/local_messages.hpp"

#include <catch2/catch.hpp>

using horo::Errc;
using namespace horo::runtime::bootstrap;

TEST_CASE("every message comes back as it was") {
  const auto hello = *decode(
      encode(LocalHello{.version = 7, .rank = 5, .size = 8, .local_rank = 1, .local_size = 4}));
  REQUIRE(std::holds_alternative<LocalHello>(hello));
  CHECK(std::get<LocalHello>(hello).rank == 5);
  CHECK(std::get<LocalHello>(hello).local_size == 4);
  const auto welcome = std::get<LocalWelcome>(
      *decode(encode(LocalWelcome{.nonce = ~0ULL, .epoch = 3, .ranks = {4, 5, 9}})));
  CHECK(welcome.nonce == ~0ULL);
  CHECK(welcome.epoch == 3);
  CHECK(welcome.ranks == std::vector<std::int32_t>{4, 5, 9});
  CHECK(std::get<LocalPeers>(*decode(encode(LocalPeers{.first = 200}))).first == 200);
  CHECK(std::get<LocalGreeting>(*decode(encode(LocalGreeting{.version = 100}))).version == 100);
  CHECK(std::holds_alternative<LocalQuestion>(*decode(encode(LocalQuestion{}))));
  const auto refusal = std::get<LocalRefusal>(
      *decode(encode(LocalRefusal{.code = Errc::timed_out, .message = "late"})));
  CHECK(refusal.code == Errc::timed_out);
  CHECK(refusal.message == "late");
}

TEST_CASE("a message that is cut, longer or of another form is refused") {
  const auto whole = encode(LocalWelcome{.nonce = 1, .epoch = 1, .ranks = {0, 1}});
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(decode(whole.substr(0, n)));
  CHECK_FALSE(decode(whole + "x"));
  auto other = whole;
  other[4] = 9;
  CHECK(decode(other).error().code == Errc::version_mismatch);
  other = whole;
  other[8] = 99;
  CHECK(decode(other).error().code == Errc::protocol);
  other[0] = 'x';
  CHECK(decode(other).error().code == Errc::protocol);
}

TEST_CASE("a count that the bytes cannot hold is refused, and later fields are zero") {
  const auto bytes = horo::ByteWriter{}.fixed(0xffffffffU).fixed(1U).take();
  horo::ByteReader reader(bytes);
  std::vector<std::int32_t> numbers;
  list(horo::wire::Fixed{}).read(reader, numbers);
  CHECK(numbers.empty());
  CHECK(reader.fixed<std::uint64_t>() == 0);
  CHECK_FALSE(reader.finished());
}

TEST_CASE("a refusal with an unknown status code is an error, not a success") {
  auto bytes = encode(LocalRefusal{.code = Errc::ok, .message = "?"});
  CHECK(std::get<LocalRefusal>(*decode(bytes)).code == Errc::protocol);
}
