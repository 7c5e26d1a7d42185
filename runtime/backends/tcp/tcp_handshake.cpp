// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_handshake.hpp"

#include <algorithm>

#include "base/codec/bytes.hpp"

namespace horo::runtime {

namespace {

constexpr std::string_view kMagic{"horo-tx\0", 8};
constexpr std::size_t kHelloBytes = 72;
constexpr std::size_t kChallengeBytes = 32;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kWelcomeBytes = 40;

template <std::size_t N>
std::array<std::uint8_t, N> array_of(BytesView bytes) {
  std::array<std::uint8_t, N> out{};
  std::copy_n(bytes.begin(), std::min(N, bytes.size()), out.begin());
  return out;
}

Failure stranger() {
  return fail(Errc::permission_denied, "the other side does not know this job's secret");
}

Status same_version(std::uint32_t theirs) {
  if (theirs == TcpHandshake::kVersion) return {};
  return fail(Errc::version_mismatch, "the other side speaks version {} between ranks, this {}",
              theirs, TcpHandshake::kVersion);
}

kv::ServerTerms terms() {
  return {.version = TcpHandshake::kVersion, .max_payload = 0};
}

}  // namespace

SetToken set_token(const kv::Secret& secret, std::string_view name) {
  const auto whole = kv::derived_secret(secret, fmt::format("horo-tcp set {}", name), 0);
  return array_of<16>(whole);
}

kv::Secret edge_key(const kv::Secret& secret, const TcpEdge& edge) {
  std::string token;
  for (const auto byte : edge.set) token += fmt::format("{:02x}", byte);
  return kv::derived_secret(
      secret, fmt::format("horo-tcp edge {} {} {} {}", token, edge.from, edge.to, edge.worker), 0);
}

TcpHandshake TcpHandshake::connecting(const kv::Secret& secret, const TcpEdge& edge,
                                      const kv::Nonce& nonce) {
  TcpHandshake made(secret, State::challenge);
  made.edge_ = edge;
  made.key_ = edge_key(secret, edge);
  made.handshake_.client_version = kVersion;
  made.handshake_.client_nonce = nonce;
  made.output_ = ByteWriter()
                     .raw(kMagic)
                     .fixed(kVersion)
                     .raw(as_text(nonce))
                     .raw(as_text(edge.set))
                     .fixed(edge.from)
                     .fixed(edge.to)
                     .fixed(edge.worker)
                     .take();
  return made;
}

TcpHandshake TcpHandshake::accepting(const kv::Secret& secret, std::uint32_t me,
                                     const kv::Nonce& nonce) {
  TcpHandshake made(secret, State::hello);
  made.me_ = me;
  made.handshake_.server_nonce = nonce;
  return made;
}

std::size_t TcpHandshake::room() const {
  std::size_t wanted = 0;
  switch (state_) {
    case State::hello:
      wanted = kHelloBytes;
      break;
    case State::challenge:
      wanted = kChallengeBytes;
      break;
    case State::proof:
      wanted = kProofBytes;
      break;
    case State::welcome:
      wanted = kWelcomeBytes;
      break;
    case State::open:
      break;
  }
  return wanted - std::min(wanted, input_.size());
}

Status TcpHandshake::feed(BytesView bytes) {
  input_.append(as_text(bytes.first(std::min(bytes.size(), room()))));
  if (room() != 0) return {};
  Status status;
  switch (state_) {
    case State::hello:
      status = take_hello();
      break;
    case State::challenge:
      status = take_challenge();
      break;
    case State::proof:
      status = take_proof();
      break;
    case State::welcome:
      status = take_welcome();
      break;
    case State::open:
      break;
  }
  input_.clear();
  return status;
}

Status TcpHandshake::take_hello() {
  ByteReader reader(input_);
  if (as_text(reader.raw(kMagic.size())) != kMagic)
    return fail(Errc::permission_denied, "the other side is not a rank of a job");
  handshake_.client_version = reader.fixed<std::uint32_t>();
  handshake_.client_nonce = array_of<32>(reader.raw(32));
  edge_.set = array_of<16>(reader.raw(16));
  edge_.from = reader.fixed<std::uint32_t>();
  edge_.to = reader.fixed<std::uint32_t>();
  edge_.worker = reader.fixed<std::uint32_t>();
  if (edge_.to != me_) return fail(Errc::permission_denied, "the other side wants another rank");
  key_ = edge_key(secret_, edge_);
  output_.append(as_text(handshake_.server_nonce));
  state_ = State::proof;
  return {};
}

Status TcpHandshake::take_challenge() {
  handshake_.server_nonce = array_of<32>(as_bytes(input_));
  output_.append(as_text(kv::client_proof(key_, handshake_)));
  state_ = State::welcome;
  return {};
}

Status TcpHandshake::take_proof() {
  if (!kv::same(kv::client_proof(key_, handshake_), array_of<32>(as_bytes(input_))))
    return stranger();
  output_.append(ByteWriter()
                     .fixed(terms().version)
                     .fixed(terms().max_payload)
                     .raw(as_text(kv::server_proof(key_, handshake_, terms())))
                     .take());
  HORO_TRY_STATUS(same_version(handshake_.client_version));
  state_ = State::open;
  return {};
}

Status TcpHandshake::take_welcome() {
  ByteReader reader(input_);
  kv::ServerTerms theirs;
  theirs.version = reader.fixed<std::uint32_t>();
  theirs.max_payload = reader.fixed<std::uint32_t>();
  if (!kv::same(kv::server_proof(key_, handshake_, theirs), array_of<32>(reader.raw(32))))
    return stranger();
  HORO_TRY_STATUS(same_version(theirs.version));
  state_ = State::open;
  return {};
}

}  // namespace horo::runtime
