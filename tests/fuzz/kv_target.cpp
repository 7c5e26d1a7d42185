// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>

#include "base/kv/address.hpp"
#include "base/kv/kv_messages.hpp"
#include "base/kv/server/server_session.hpp"

namespace horo::fuzz {

namespace {

using kv::ServerSession;

const kv::Secret kSecret{1, 2, 3};
const kv::ServerTerms kTerms{.version = kv::kVersion, .max_payload = 65536};
const kv::Handshake kHandshake{
    .client_version = kv::kVersion, .client_nonce = {7}, .server_nonce = {4}};

/// A decoded request must encode to the same bytes, because each request has only one form.
std::string run_request(std::string_view bytes) {
  const auto request = kv::decode_request(kv::as_bytes(bytes));
  if (!request) return request.error().code == Errc::protocol ? "" : "the error is not protocol";
  const auto again = kv::encode(*request);
  return again && *again == bytes ? "" : "a decoded request encodes to other bytes";
}

std::string run_response(std::string_view bytes) {
  const auto response = kv::decode_response(kv::as_bytes(bytes));
  if (!response) return response.error().code == Errc::protocol ? "" : "the error is not protocol";
  return kv::encode(*response) == bytes ? "" : "a decoded response encodes to other bytes";
}

void drain(ServerSession& session) {
  if (session.has_output()) session.sent(session.output().size());
}

/// Handles the data that the session was fed. Returns false when the session has ended.
bool step(ServerSession& session) {
  while (true) {
    drain(session);
    auto request = session.next();
    if (!request || session.ends_after_output()) return false;
    if (*request) {
      session.answer({.op = (*request)->op, .id = (*request)->id});
    } else if (!session.has_output()) {
      return true;
    }
  }
}

/// A client without the secret: whatever it sends, it is not trusted, and little of it is kept.
std::string run_unauthenticated(std::string_view bytes) {
  ServerSession session(kSecret, kTerms, kHandshake.server_nonce);
  while (!bytes.empty()) {
    if (session.room() > kv::kHelloBytes)
      return "an unauthenticated client may send more than a hello";
    const auto part = bytes.substr(0, session.room());
    if (part.empty()) return "the session neither reads nor writes";
    session.feed(kv::as_bytes(part));
    bytes.remove_prefix(part.size());
    if (!step(session)) return "";
    if (session.authenticated()) return "an unauthenticated client was trusted";
  }
  return "";
}

/// A client's stream after its handshake. The first two bytes decide how it is cut into reads, and
/// whether its seals are valid; with valid seals the payloads are tested.
std::string run_client(std::string_view bytes) {
  if (bytes.size() < 2) return "";
  const auto cut = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) + 1;
  const bool sealed = (bytes[1] & 1) != 0;
  bytes.remove_prefix(2);

  ServerSession session(kSecret, kTerms, kHandshake.server_nonce);
  session.feed(kv::as_bytes(encode(kv::Hello{.client_nonce = kHandshake.client_nonce})));
  step(session);
  session.feed(kv::client_proof(kSecret, kHandshake));
  if (!step(session) || !session.authenticated()) return "a valid handshake was refused";

  std::string stream(bytes);
  if (sealed) {
    stream.clear();
    kv::Seal seal(kSecret, kHandshake, kv::Direction::to_server);
    for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 64))) {
      append_frame(stream, bytes.substr(0, 64), seal);
    }
  }
  for (std::string_view rest = stream; !rest.empty();
       rest.remove_prefix(std::min(cut, rest.size()))) {
    session.feed(kv::as_bytes(rest.substr(0, cut)));
    if (!step(session)) break;
  }
  return "";
}

std::string run_address(std::string_view bytes) {
  const auto address = kv::parse_address(bytes);
  if (!address) return address.error().code == Errc::invalid_argument ? "" : "another error";
  const auto again = kv::parse_address(kv::to_string(*address));
  return again && *again == *address ? "" : "an address changes when it is written and read";
}

std::vector<std::string> requests() {
  using kv::Op;
  std::vector<std::string> out;
  for (const kv::Request& request :
       {kv::Request{.op = Op::set, .id = 1, .keys = {"key"}, .value = "value"},
        kv::Request{.op = Op::get, .id = 2, .keys = {"key"}},
        kv::Request{.op = Op::wait, .id = 3, .keys = {"a", "b", "c"}},
        kv::Request{.op = Op::erase, .id = 4, .keys = {"a", "b"}},
        kv::Request{.op = Op::add, .id = 5, .keys = {"n"}, .delta = -1},
        kv::Request{.op = Op::compare_and_set,
        .id = 6,
        .keys = {"c"},
        .value = "new",
        .expected = "old"}}) {
    out.push_back(*kv::encode(request));
  }
  return out;
}

std::vector<std::string> client_streams() {
  std::vector<std::string> out;
  for (const auto& request : requests()) {
    out.push_back(std::string("\x03\x01", 2) + request);
    kv::Seal seal(kSecret, kHandshake, kv::Direction::to_server);
    out.push_back(std::string("\x07\x00", 2));
    append_frame(out.back(), request, seal);
  }
  return out;
}

}  // namespace

std::vector<Target> kv_targets() {
  const auto proof = kv::client_proof(kv::Secret{9}, kHandshake);
  return {
      {.name = "kv-request", .run = run_request, .seeds = requests(), .words = {}, .rounds = 50000},
      {.name = "kv-response",
       .run = run_response,
       .seeds = {encode(
                     kv::Response{.op = kv::Op::find, .id = 1, .present = true, .value = "value"}),
                 encode(kv::Response{.op = kv::Op::add, .id = 2, .number = -1})},
       .words = {},
       .rounds = 50000},
      {.name = "kv-unauthenticated",
       .run = run_unauthenticated,
       .seeds = {encode(kv::Hello{.client_nonce = kHandshake.client_nonce}) +
                     std::string(proof.begin(), proof.end()),
                 "GET / HTTP/1.1\r\n\r\n"},
       .words = {"horo-kv"},
       .rounds = 20000},
      {.name = "kv-client",
       .run = run_client,
       .seeds = client_streams(),
       .words = {},
       .rounds = 20000},
      {.name = "kv-address",
       .run = run_address,
       .seeds = {"node1:4711", "[::1]:80", "10.0.0.1:65535"},
       .words = {":", "[", "]", "%", "65536"},
       .rounds = 20000},
  };
}

}  // namespace horo::fuzz
