// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "runtime/backends/tcp/tcp_contacts.hpp"

using namespace horo;
using namespace horo::runtime;

TEST_CASE("a table of addresses reads as it was written, with addresses of both kinds") {
  const std::map<int, kv::Address> contacts = {
      {0, {"10.0.0.1", 4711}}, {7, {"fd00::17", 1}}, {1023, {"10.3.255.254", 65535}}};
  CHECK(decode_contacts(encode_contacts(contacts)).value() == contacts);
  CHECK(encode_contacts(contacts).size() < 40 * contacts.size());
}

TEST_CASE("a text that is no table of addresses is refused") {
  for (const auto* wrong : {"x", "1", "1 ", "1 10.0.0.1", "-1 10.0.0.1:5", "1 10.0.0.1:70000",
                            "1 10.0.0.1:5\n\n", " 1 10.0.0.1:5"})
    CHECK_FALSE(decode_contacts(wrong));
}
