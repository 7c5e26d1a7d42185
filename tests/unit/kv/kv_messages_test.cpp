// SPDX-License-Identifier: Apache-2.0
#include "base/kv/kv_messages.hpp"

#include <vector>

#include <catch2/catch.hpp>

using horo::Errc;
using namespace horo::kv;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

const std::string kBinary("\0\xff\n\0", 4);

const std::vector<Request>& requests() {
  static const std::vector<Request> all{
      {.op = Op::set, .id = 1, .keys = {"a"}, .value = kBinary},
      {.op = Op::set, .id = 2, .keys = {kBinary}, .value = ""},
      {.op = Op::find, .id = 3, .keys = {"key"}},
      {.op = Op::get, .id = 0xffffffff, .keys = {std::string(kMaxKeyBytes, 'k')}},
      {.op = Op::wait, .id = 5, .keys = {"a", "b", "c"}},
      {.op = Op::missing, .id = 6, .keys = {"a", "b"}},
      {.op = Op::add, .id = 7, .keys = {"n"}, .delta = -5},
      {.op = Op::compare_and_set, .id = 8, .keys = {"c"}, .value = "new", .expected = "old"},
      {.op = Op::compare_and_set, .id = 9, .keys = {"c"}, .value = "new"},
      {.op = Op::erase, .id = 10, .keys = {"a", "b"}},
  };
  return all;
}

const std::vector<Response>& responses() {
  static const std::vector<Response> all{
      {.op = Op::set, .id = 1},
      {.op = Op::find, .id = 2, .present = true, .value = kBinary},
      {.op = Op::add, .id = 3, .number = -7},
      {.op = Op::compare_and_set, .id = 4, .swapped = true, .present = true, .value = "v"},
      {.op = Op::get, .id = 5, .status = Errc::resource_exhausted, .value = "no room"},
  };
  return all;
}

void check_equal(const Request& a, const Request& b) {
  CHECK(a.op == b.op);
  CHECK(a.id == b.id);
  CHECK(a.keys == b.keys);
  CHECK(a.value == b.value);
  CHECK(a.expected == b.expected);
  CHECK(a.delta == b.delta);
}

void check_equal(const Response& a, const Response& b) {
  CHECK(a.op == b.op);
  CHECK(a.id == b.id);
  CHECK(a.status == b.status);
  CHECK(a.swapped == b.swapped);
  CHECK(a.present == b.present);
  CHECK(a.number == b.number);
  CHECK(a.value == b.value);
}

}  // namespace

TEST_CASE("a request is the same after encoding and decoding") {
  for (const auto& request : requests())
    check_equal(*decode_request(as_bytes(*encode(request))), request);
}

TEST_CASE("a response is the same after encoding and decoding") {
  for (const auto& response : responses())
    check_equal(*decode_response(as_bytes(encode(response))), response);
}

TEST_CASE("the bytes of a request are those of the document") {
  const Request request{.op = Op::set, .id = 0x01020304, .keys = {"ab"}, .value = "xyz"};
  CHECK(*encode(request) == std::string("\x01\x04\x03\x02\x01\x02\x00"
                                        "ab\x03\x00\x00\x00xyz",
                                        16));
}

TEST_CASE("the bytes of a response are those of the document") {
  const Response response{.op = Op::find, .id = 1, .present = true, .number = 2, .value = "v"};
  CHECK(encode(response) ==
        std::string("\x82\x01\x00\x00\x00\x00\x02\x02\0\0\0\0\0\0\0\x01\0\0\0v", 20));
}

TEST_CASE("a request that is cut at any byte, or has one more, is refused") {
  for (const auto& request : requests()) {
    const auto whole = *encode(request);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      INFO("operation " << int(request.op) << " cut at " << n);
      const auto cut = decode_request(as_bytes(whole).first(n));
      REQUIRE_FALSE(cut);
      CHECK(cut.error().code == Errc::protocol);
    }
    CHECK_FALSE(decode_request(as_bytes(whole + 'x')));
  }
}

TEST_CASE("a response that is cut at any byte, or has one more, is refused") {
  for (const auto& response : responses()) {
    const auto whole = encode(response);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      CHECK(decode_response(as_bytes(whole).first(n)).error().code == Errc::protocol);
    }
    CHECK_FALSE(decode_response(as_bytes(whole + 'x')));
  }
}

TEST_CASE("a hello or welcome of the wrong size or magic is refused") {
  const auto hello = encode(Hello{.version = 7});
  REQUIRE(hello.size() == kHelloBytes);
  CHECK(decode_hello(as_bytes(hello))->version == 7);
  CHECK_FALSE(decode_hello(as_bytes(hello).first(kHelloBytes - 1)));
  CHECK_FALSE(decode_hello(as_bytes(hello + 'x')));
  auto bad = hello;
  bad[0] = 'H';
  CHECK_FALSE(decode_hello(as_bytes(bad)));

  const auto welcome = encode(Welcome{.terms = {.version = 3, .max_payload = 5}});
  REQUIRE(welcome.size() == kWelcomeBytes);
  CHECK(decode_welcome(as_bytes(welcome))->terms.max_payload == 5);
  CHECK_FALSE(decode_welcome(as_bytes(welcome).first(kWelcomeBytes - 1)));
}

TEST_CASE("a claimed number of keys allocates nothing until the keys have arrived") {
  // wait, id, 65536 keys, and none of them.
  const std::string claim("\x04\x01\0\0\0\0\0\x01\0", 9);
  CHECK(decode_request(as_bytes(claim)).error().code == Errc::protocol);
  const std::string too_many("\x04\x01\0\0\0\x01\0\x01\0", 9);
  CHECK(decode_request(as_bytes(too_many)).error().message ==
        "a request is invalid: keys: 65537 is more than 65536");
  const std::string none("\x04\x01\0\0\0\0\0\0\0", 9);
  CHECK_FALSE(decode_request(as_bytes(none)));
}

TEST_CASE("a length of zero or over the bound is refused") {
  CHECK(*decode_length(as_bytes(encode_length(100)), 100) == 100);
  CHECK_FALSE(decode_length(as_bytes(encode_length(101)), 100));
  CHECK_FALSE(decode_length(as_bytes(encode_length(0)), 100));
  CHECK_FALSE(decode_length(as_bytes(encode_length(1)).first(3), 100));
}

TEST_CASE("keys that a server would refuse are refused with their size before they are sent") {
  CHECK(encode(Request{.op = Op::set, .keys = {""}}).error().code == Errc::invalid_argument);
  CHECK(encode(Request{.op = Op::set}).error().code == Errc::invalid_argument);
  CHECK(encode(Request{.op = Op::set, .keys = {"a", "b"}}).error().code == Errc::invalid_argument);
  const auto long_key =
      encode(Request{.op = Op::get, .keys = {std::string(kMaxKeyBytes + 1, 'k')}});
  CHECK(long_key.error().message.find("has 1025 bytes; a key has 1 to 1024") != std::string::npos);
  const std::vector<std::string> many(kMaxKeysPerRequest + 1, "k");
  CHECK(encode(Request{.op = Op::wait, .keys = many}).error().message.find("65537 keys") !=
        std::string::npos);
}

TEST_CASE("unknown operations, statuses and flags are refused") {
  auto request = *encode(requests().front());
  for (const char op : {'\0', '\x09', '\x7f', '\xff'}) {
    request[0] = op;
    CHECK_FALSE(decode_request(as_bytes(request)));
  }
  const auto response = encode(responses().front());
  for (const auto& [position, value] :
       {std::pair{0, '\x01'}, {0, '\x89'}, {5, '\x7f'}, {6, '\x04'}}) {
    auto bad = response;
    bad[static_cast<std::size_t>(position)] = value;
    CHECK_FALSE(decode_response(as_bytes(bad)));
  }
}
