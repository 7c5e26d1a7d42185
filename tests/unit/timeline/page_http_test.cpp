// SPDX-License-Identifier: Apache-2.0
#include "timeline/serve/page_http.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace horo::timeline;

namespace {

const HttpPage kPage{.port = 4711, .token = "secret", .body = "<p>page</p>"};

int status_of(std::string_view received) {
  const auto answer = answer_http(received, kPage);
  return answer ? answer->status : 0;
}

}  // namespace

TEST_CASE("a request with the right address gets the page") {
  const auto answer = answer_http("GET /secret/ HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n", kPage);
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->body == kPage.body);
  CHECK(answer->head.find("Content-Length: 11\r\n") != std::string::npos);
  CHECK(answer->head.ends_with("\r\n\r\n"));
  CHECK(status_of("HEAD /secret/ HTTP/1.0\r\nhost:\tLOCALHOST:4711 \r\n\r\n") == 200);
  CHECK(status_of("GET /secret/ HTTP/1.1\r\nHost: [::1]:4711\r\n\r\n") == 200);
}

TEST_CASE("a request is read until its head is complete, up to a limit") {
  const std::string whole = "GET /secret/ HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n";
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(status_of(whole.substr(0, i)) == 0);
  CHECK(status_of(whole) == 200);
  CHECK(status_of("GET /" + std::string(kMostHead, 'a')) == 431);
  CHECK(status_of("GET /" + std::string(kMostHead, 'a') + " HTTP/1.1\r\n\r\n") == 431);
}

TEST_CASE("other hosts, paths and methods are refused") {
  const auto get = [](std::string_view path, std::string_view host) {
    return status_of(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, host));
  };
  CHECK(get("/secret/", "evil.example:4711") == 421);
  CHECK(get("/secret/", "127.0.0.1:4712") == 421);
  CHECK(get("/secret/", "127.0.0.1") == 421);
  CHECK(get("/secret/", "127.0.0.1:4711, evil.example") == 421);
  CHECK(get("/secres/", "127.0.0.1:4711") == 404);
  CHECK(get("/secret", "127.0.0.1:4711") == 404);
  CHECK(get("/", "127.0.0.1:4711") == 404);
  CHECK(status_of("PUT /secret/ HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n\r\n") == 405);
  CHECK(status_of("GET /secret/ HTTP/1.1\r\n\r\n") == 400);
  CHECK(
      status_of("GET /secret/ HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nHost: 127.0.0.1:4711\r\n\r\n") ==
      400);
  CHECK(status_of("GET\r\n\r\n") == 400);
  CHECK(status_of("GET /secret/ SMTP\r\nHost: 127.0.0.1:4711\r\n\r\n") == 400);
  CHECK(status_of("\r\n\r\n") == 400);
}
