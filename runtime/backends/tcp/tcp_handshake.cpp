// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_handshake.hpp"

#include <algorithm>

#include "base/codec/bytes.hpp"

namespace horo::runtime {

namespace {

constexpr kv::ProvenService kService{.magic = std::string_view("horo-tx\0", 8),
                                     .peer = "a rank of a job",
                                     .between = "ranks",
                                     .version = TcpHandshake::kVersion,
                                     .greeting = 28};

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
                                      const kv::Nonce& nonce) {
  return TcpHandshake(
      kv::MutualProof::connecting(kService, edge_key(secret, edge), nonce, greeting_of(edge)));
}

TcpHandshake TcpHandshake::accepting(const kv::Secret& secret, std::uint32_t me,
                                     const kv::Nonce& nonce) {
  const auto key_of = [secret, me](BytesView greeting) -> Result<kv::Secret> {
    const auto edge = edge_of(greeting);
    if (edge.to != me) return fail(Errc::permission_denied, "the other side wants another rank");
    return edge_key(secret, edge);
  };
  return TcpHandshake(kv::MutualProof::accepting(kService, key_of, nonce));
}

TcpEdge TcpHandshake::edge() const {
  return edge_of(as_bytes(proof_.greeting()));
}

}  // namespace horo::runtime
