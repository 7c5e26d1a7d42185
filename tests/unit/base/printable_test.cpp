// SPDX-License-Identifier: Apache-2.0
#include "base/text/printable.hpp"

#include <catch2/catch.hpp>

using namespace horo;

TEST_CASE("printable text has neither terminal sequences nor control characters") {
  CHECK(printable("\x1b[1;31mred\x1b[0m\a\ttext") == "red\ttext");
  CHECK(printable("a\x1b]0;title\x07"
                  "b\x1b]8;;http://x\x1b\\c") == "abc");
  CHECK(printable("a\x1b"
                  "cb\x1b[") == "acb");
  CHECK(printable("a\x1bP1$qm\x1b\\b\x7f\rc") == "abc");
  CHECK(printable("\x1b]no end\nnext") == " next");
}

TEST_CASE("printable text has no control character of C1, encoded or as a byte") {
  CHECK(printable("a\xc2\x9b"
                  "31mb") == "a31mb");
  CHECK(printable("a\xc2\x85"
                  "b\xc2\x9d"
                  "c") == "abc");
  CHECK(printable("a\x9b"
                  "31mb") == "a?31mb");
  CHECK(printable("\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82") ==
        "\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82");
}

TEST_CASE("printable text does not turn the writing direction") {
  CHECK(printable("a\xe2\x80\xae"
                  "b\xe2\x81\xa6"
                  "c\xe2\x80\xa8"
                  "d\xe2\x80\x8f"
                  "e\xd8\x9c"
                  "f") == "abcdef");
}

TEST_CASE("printable text is UTF-8, whatever the bytes were") {
  CHECK(printable("\xff\xfe") == "??");
  CHECK(printable("\xc0\x80") == "??");
  CHECK(printable("\xed\xa0\x80") == "???");
  CHECK(printable("\xf5\x80\x80\x80") == "????");
  CHECK(printable("\xe2\x82") == "??");
}

TEST_CASE("one line of printable text stays one line") {
  CHECK(printable("first\nhoro: forged") == "first horo: forged");
  CHECK(printable_lines("first\x1b[2J\nsecond\n") == "first\nsecond\n");
}
