// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/wire.hpp"

#include <catch2/catch.hpp>

using horo::Errc;
using namespace horo::runtime::bootstrap;

TEST_CASE("every message comes back as it was") {
  const auto hello =
      *decode(encode(Hello{.version = 7, .rank = 5, .size = 8, .local_rank = 1, .local_size = 4}));
  REQUIRE(std::holds_alternative<Hello>(hello));
  CHECK(std::get<Hello>(hello).rank == 5);
  CHECK(std::get<Hello>(hello).local_size == 4);
  const auto welcome =
      std::get<Welcome>(*decode(encode(Welcome{.nonce = ~0ULL, .epoch = 3, .ranks = {4, 5, 9}})));
  CHECK(welcome.nonce == ~0ULL);
  CHECK(welcome.epoch == 3);
  CHECK(welcome.ranks == std::vector<std::int32_t>{4, 5, 9});
  CHECK(std::get<Peers>(*decode(encode(Peers{.first = 200}))).first == 200);
  CHECK(std::get<Greeting>(*decode(encode(Greeting{.version = 100}))).version == 100);
  CHECK(std::holds_alternative<Question>(*decode(encode(Question{}))));
  const auto refusal =
      std::get<Refusal>(*decode(encode(Refusal{.code = Errc::timed_out, .message = "late"})));
  CHECK(refusal.code == Errc::timed_out);
  CHECK(refusal.message == "late");
}

TEST_CASE("a message that is cut, longer or of another form is refused") {
  const auto whole = encode(Welcome{.nonce = 1, .epoch = 1, .ranks = {0, 1}});
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

TEST_CASE("a count is not believed beyond what is there") {
  Writer out;
  out.u32(0xffffffffU).u32(1);
  const auto bytes = std::move(out).take();
  Reader in(bytes);
  CHECK(in.count(4) == 0);
  CHECK_FALSE(in.ok());
  CHECK(in.u64() == 0);
}

TEST_CASE("an unknown status is not taken for success") {
  auto bytes = encode(Refusal{.code = Errc::ok, .message = "?"});
  CHECK(std::get<Refusal>(*decode(bytes)).code == Errc::protocol);
}
