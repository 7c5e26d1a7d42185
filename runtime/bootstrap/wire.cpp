// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/wire.hpp"

#include <array>

#include "base/board_header.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr std::uint32_t kMagic = 0x544d4f48;  // "HOMT"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMostCode = static_cast<std::uint32_t>(Errc::cancelled);

std::int32_t i32(Reader& in) {
  return static_cast<std::int32_t>(in.u32());
}

void put(Writer& out, const Greeting& m) {
  out.u32(m.version);
}

void put(Writer& out, const Hello& m) {
  out.u32(m.version);
  for (const auto value : {m.rank, m.size, m.local_rank, m.local_size})
    out.u32(static_cast<std::uint32_t>(value));
}

void put(Writer& out, const Welcome& m) {
  out.u64(m.nonce).u64(m.epoch).u32(static_cast<std::uint32_t>(m.ranks.size()));
  for (const auto rank : m.ranks) out.u32(static_cast<std::uint32_t>(rank));
}

void put(Writer& out, const Peers& m) {
  out.u32(m.first);
}

void put(Writer&, const Question&) {}

void put(Writer& out, const Refusal& m) {
  out.u32(static_cast<std::uint32_t>(m.code)).text(m.message);
}

void get(Reader& in, Greeting& m) {
  m.version = in.u32();
}

void get(Reader& in, Hello& m) {
  m.version = in.u32();
  for (auto* value : {&m.rank, &m.size, &m.local_rank, &m.local_size}) *value = i32(in);
}

void get(Reader& in, Welcome& m) {
  m.nonce = in.u64();
  m.epoch = in.u64();
  m.ranks.resize(in.count(4));
  for (auto& rank : m.ranks) rank = i32(in);
}

void get(Reader& in, Peers& m) {
  m.first = in.u32();
}

void get(Reader&, Question&) {}

void get(Reader& in, Refusal& m) {
  const auto code = in.u32();
  m.code = code == 0 || code > kMostCode ? Errc::protocol : static_cast<Errc>(code);
  m.message = in.text();
}

template <typename T>
Result<Message> read(Reader& in) {
  T message;
  get(in, message);
  if (!in.complete()) return fail(Errc::protocol, "a rank of this host sent a malformed message");
  return Message(std::move(message));
}

}  // namespace

Writer& Writer::u32(std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xffU);
  return *this;
}

Writer& Writer::u64(std::uint64_t value) {
  return u32(static_cast<std::uint32_t>(value)).u32(static_cast<std::uint32_t>(value >> 32U));
}

Writer& Writer::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes_ += value;
  return *this;
}

std::string_view Reader::take(std::size_t n) {
  if (n > rest_.size()) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  const auto part = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return part;
}

std::uint32_t Reader::u32() {
  std::uint32_t value = 0;
  const auto part = take(4);
  for (std::size_t i = 0; i < part.size(); ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(part[i])) << (8 * i);
  return value;
}

std::uint64_t Reader::u64() {
  const std::uint64_t low = u32();
  return low | static_cast<std::uint64_t>(u32()) << 32U;
}

std::string Reader::text() {
  return std::string(take(u32()));
}

std::uint32_t Reader::count(std::size_t least) {
  const auto n = u32();
  if (n <= rest_.size() / least) return n;
  ok_ = false;
  rest_ = {};
  return 0;
}

std::string encode(const Message& message) {
  Writer out;
  out.u32(kMagic).u32(kVersion).u32(static_cast<std::uint32_t>(message.index()));
  std::visit([&out](const auto& m) { put(out, m); }, message);
  return std::move(out).take();
}

Result<Message> decode(std::string_view bytes) {
  Reader in(bytes);
  if (in.u32() != kMagic) return fail(Errc::protocol, "what meets here is no rank of horo");
  if (const auto version = in.u32(); version != kVersion) {
    return fail(
        Errc::version_mismatch,
        "a rank of this host meets by version {}, this libhoro by {}; install the same horo "
        "for all ranks",
        version, kVersion);
  }
  constexpr std::array kReaders{read<Greeting>, read<Hello>,    read<Welcome>,
                                read<Peers>,    read<Question>, read<Refusal>};
  static_assert(kReaders.size() == std::variant_size_v<Message>);
  const auto kind = in.u32();
  if (kind >= kReaders.size())
    return fail(Errc::protocol, "a rank of this host sent kind {}", kind);
  return kReaders[kind](in);
}

}  // namespace horo::runtime::bootstrap
