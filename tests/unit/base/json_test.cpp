// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <limits>

#include <catch2/catch.hpp>

using horo::json_quote;
using horo::JsonWriter;

TEST_CASE("json_quote escapes what JSON forbids in a string") {
  CHECK(json_quote("a\"b\\c\n\r\t\x01\x7f") == R"("a\"b\\c\n\r\t\u0001\u007f")");
  CHECK(json_quote("naïve €𝄞") == "\"naïve €𝄞\"");
}

TEST_CASE("json_quote replaces bytes that are not UTF-8") {
  CHECK(json_quote("\xff") == R"("\ufffd")");
  CHECK(json_quote("a\xc3") == R"("a\ufffd")");
  CHECK(json_quote("\xc3(") == R"("\ufffd(")");
  CHECK(json_quote("\xe2\x82") == R"("\ufffd\ufffd")");
  CHECK(json_quote("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");            // A surrogate.
  CHECK(json_quote("\xc0\xaf") == R"("\ufffd\ufffd")");                      // Overlong.
  CHECK(json_quote("\xf4\x90\x80\x80") == R"("\ufffd\ufffd\ufffd\ufffd")");  // Beyond Unicode.
}

TEST_CASE("JsonWriter nests and separates") {
  JsonWriter w;
  w.begin_object().key("np").value(2).key("ok").value(true).key("none").null();
  w.key("list")
      .begin_array()
      .value("a")
      .value(1.5)
      .end_array()
      .key("empty")
      .begin_array()
      .end_array();
  w.key("bad").value(std::numeric_limits<double>::infinity()).end_object();
  CHECK(w.text() ==
        "{\n  \"np\": 2,\n  \"ok\": true,\n  \"none\": null,\n  \"list\": [\n    \"a\",\n    1.5\n "
        " ],\n"
        "  \"empty\": [],\n  \"bad\": null\n}");
}
