// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_handshake.hpp"

#include <algorithm>

#include "base/codec/bytes.hpp"

namespace horo::runtime {

namespace {

kv::ProvenService service(kv::Encryption encryption) {
  return {.magic = std::string_view("horo-tx\0", 8),
          .peer = "a rank of a job",
          .between = "ranks",
          .version = TcpHandshake::kVersion,
          .encryption = encryption,
          .greeting = 28};
}

SetToken token_of(BytesView bytes) {
  SetToken token{};
  std::copy_n(bytes.begin(), std::min(token.size(), bytes.size()), token.begin());
  return token;
}

std::string greeting_of(const TcpEdge& edge) {
  return ByteWriter()
      .raw(as_text(edge.set))
      .fixed(edge.from)
      .fixed(edge.to)
      .fixed(edge.worker)
      .take();
}

TcpEdge edge_of(BytesView greeting) {
  ByteReader reader(greeting);
  TcpEdge edge;
  edge.set = token_of(reader.raw(edge.set.size()));
  edge.from = reader.fixed<std::uint32_t>();
  edge.to = reader.fixed<std::uint32_t>();
  edge.worker = reader.fixed<std::uint32_t>();
  return edge;
}

}  // namespace

SetToken set_token(const kv::Secret& secret, std::string_view name) {
  const auto whole = kv::derived_secret(secret, fmt::format("horo-tcp set {}", name), 0);
  return token_of(whole);
}

kv::Secret edge_key(const kv::Secret& secret, const TcpEdge& edge) {
  std::string token;
  for (const auto byte : edge.set) token += fmt::format("{:02x}", byte);
  return kv::derived_secret(
      secret, fmt::format("horo-tcp edge {} {} {} {}", token, edge.from, edge.to, edge.worker), 0);
}

TcpHandshake TcpHandshake::connecting(const kv::Secret& secret, const TcpEdge& edge,
                                      const kv::Nonce& nonce, kv::Encryption encryption) {
  return {kv::MutualProof::connecting(service(encryption), edge_key(secret, edge), nonce,
                                      greeting_of(edge)),
          encryption, kv::Direction::to_server};
}

TcpHandshake TcpHandshake::accepting(const kv::Secret& secret, std::uint32_t me,
                                     const kv::Nonce& nonce, kv::Encryption encryption) {
  const auto key_of = [secret, me](BytesView greeting) -> Result<kv::Secret> {
    const auto edge = edge_of(greeting);
    if (edge.to != me) return fail(Errc::permission_denied, "the other side wants another rank");
    return edge_key(secret, edge);
  };
  return {kv::MutualProof::accepting(service(encryption), key_of, nonce), encryption,
          kv::Direction::to_client};
}

TcpEdge TcpHandshake::edge() const {
  return edge_of(as_bytes(proof_.greeting()));
}

Result<std::unique_ptr<kv::CipherPair>> TcpHandshake::ciphers() const {
  if (encryption_ == kv::Encryption::off) return std::unique_ptr<kv::CipherPair>();
  return kv::CipherPair::make(proof_.key(), proof_.handshake(), outgoing_);
}

}  // namespace horo::runtime
