// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/server_session.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace horo::kv {

namespace {

/// The most that one read takes, so that a client with much to send does not delay the others.
constexpr std::size_t kReadBytes = std::size_t{64} << 10U;

}  // namespace

ServerSession::ServerSession(const Secret& secret, ServerTerms terms, const Nonce& nonce)
    : secret_(secret), terms_(terms) {
  handshake_.server_nonce = nonce;
}

std::size_t ServerSession::room() const {
  switch (state_) {
    case State::hello:
      return kHelloBytes - unread().size();
    case State::proof:
      return kProofBytes - unread().size();
    case State::open:
      return kReadBytes;
    case State::ending:
      return 0;
  }
  return 0;
}

void ServerSession::feed(BytesView bytes) {
  input_.erase(0, std::exchange(consumed_, 0));
  input_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Request>> ServerSession::next() {
  switch (state_) {
    case State::hello:
      HORO_TRY_STATUS(take_hello());
      break;
    case State::proof:
      HORO_TRY_STATUS(take_proof());
      break;
    case State::open:
      return take_frame();
    case State::ending:
      break;
  }
  return std::optional<Request>{};
}

Status ServerSession::take_hello() {
  if (unread().size() < kHelloBytes) return {};
  HORO_TRY(const Hello hello, decode_hello(unread().first(kHelloBytes)));
  consume(kHelloBytes);
  handshake_.client_version = hello.version;
  handshake_.client_nonce = hello.client_nonce;
  output_.assign(handshake_.server_nonce.begin(), handshake_.server_nonce.end());
  state_ = State::proof;
  return {};
}

Status ServerSession::take_proof() {
  if (unread().size() < kProofBytes) return {};
  Proof proof{};
  std::copy_n(unread().begin(), proof.size(), proof.begin());
  consume(kProofBytes);
  if (!same(proof, client_proof(secret_, handshake_))) {
    return fail(Errc::permission_denied, "wrong secret");
  }
  output_ = encode(Welcome{.terms = terms_, .proof = server_proof(secret_, handshake_, terms_)});
  if (handshake_.client_version != terms_.version) {
    state_ = State::ending;
    return {};
  }
  incoming_.emplace(secret_, handshake_, Direction::to_server);
  outgoing_.emplace(secret_, handshake_, Direction::to_client);
  state_ = State::open;
  return {};
}

Result<std::optional<Request>> ServerSession::take_frame() {
  HORO_CHECK(incoming_.has_value());  // State::open implies it.
  const auto bytes = unread();
  if (bytes.size() < kLengthBytes) return std::optional<Request>{};
  HORO_TRY(const std::size_t length, decode_length(bytes.first(kLengthBytes), terms_.max_payload));
  const std::size_t whole = kLengthBytes + length + kTagBytes;
  if (bytes.size() < whole) return std::optional<Request>{};
  const auto payload = std::span(input_).subspan(consumed_ + kLengthBytes, length);
  if (!opens(*incoming_, payload, bytes.subspan(kLengthBytes + length, kTagBytes))) {
    return fail(Errc::protocol, "broken seal");
  }
  HORO_TRY(Request request, decode_request(bytes.subspan(kLengthBytes, length)));
  consume(whole);
  return std::optional(std::move(request));
}

void ServerSession::answer(const Response& response,
                           const std::shared_ptr<const std::string>& value) {
  HORO_CHECK(
      outgoing_
          .has_value());  // Only requests are answered, and State::open comes before the first.
  const std::string_view body = value ? *value : response.value;
  append_frame(output_, encode_head(response, body.size()), *outgoing_, body);
}

void ServerSession::sent(std::size_t n) {
  sent_ += n;
  if (sent_ < output_.size()) return;
  // Frees the memory that one large value took.
  if (output_.capacity() > 2 * kReadBytes) output_ = {};
  output_.clear();
  sent_ = 0;
}

SealPair ServerSession::release() {
  HORO_CHECK(outgoing_.has_value() && incoming_.has_value());
  return {.outgoing = std::move(*outgoing_), .incoming = std::move(*incoming_)};
}

BytesView ServerSession::unread() const {
  return as_bytes(input_).subspan(consumed_);
}

void ServerSession::consume(std::size_t n) {
  consumed_ += n;
  // Frees the memory that one large value took.
  if (consumed_ == input_.size()) {
    consumed_ = 0;
    if (input_.capacity() > 2 * kReadBytes) {
      input_ = {};
    } else {
      input_.clear();
    }
  }
}

}  // namespace horo::kv
