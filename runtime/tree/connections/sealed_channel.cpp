// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/sealed_channel.hpp"

#include <algorithm>

#include "base/kv/kv_messages.hpp"

namespace horo::runtime::tree {

namespace {

constexpr std::string_view kMagic{"horo-tr\0", 8};
constexpr std::size_t kHelloBytes = 44;
constexpr std::size_t kChallengeBytes = 32;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kWelcomeBytes = 40;
constexpr std::size_t kReadAhead = 64 << 10;
constexpr std::size_t kKept = 64 << 10;  // Capacity kept by an empty buffer.

template <std::size_t N>
std::array<std::uint8_t, N> array_of(BytesView bytes) {
  std::array<std::uint8_t, N> out{};
  std::copy_n(bytes.begin(), N, out.begin());
  return out;
}

Failure stranger() {
  return fail(Errc::permission_denied, "the other side does not know this job's secret");
}

}  // namespace

kv::Secret channel_key(const kv::Secret& secret, Epoch epoch) {
  return kv::derived_secret(secret, "horo-tree", epoch.value());
}

SealedChannel::SealedChannel(Side side, const kv::Secret& key, const kv::Nonce& nonce,
                             std::uint32_t version)
    : side_(side),
      version_(version),
      key_(key),
      state_(side == Side::connects ? State::challenge : State::hello) {
  if (side == Side::accepts) {
    handshake_.server_nonce = nonce;
    return;
  }
  handshake_.client_version = version;
  handshake_.client_nonce = nonce;
  output_ = ByteWriter().raw(kMagic).fixed(version).raw(as_text(nonce)).take();
}

BytesView SealedChannel::unread() const {
  return as_bytes(std::string_view(input_).substr(consumed_));
}

std::size_t SealedChannel::room() const {
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
      return kReadAhead;
  }
  return wanted - std::min(wanted, unread().size());
}

void SealedChannel::feed(BytesView bytes) {
  if (consumed_ != 0) {
    input_.erase(0, consumed_);
    consumed_ = 0;
    if (input_.empty() && input_.capacity() > kKept) input_.shrink_to_fit();
  }
  input_.append(as_text(bytes));
}

Status SealedChannel::shake_hands() {
  while (state_ != State::open) {
    if (room() != 0) return {};
    switch (state_) {
      case State::hello:
        HORO_TRY_STATUS(take_hello());
        break;
      case State::challenge:
        HORO_TRY_STATUS(take_challenge());
        break;
      case State::proof:
        HORO_TRY_STATUS(take_proof());
        break;
      case State::welcome:
        HORO_TRY_STATUS(take_welcome());
        break;
      case State::open:
        break;
    }
  }
  return {};
}

Status SealedChannel::take_hello() {
  ByteReader reader(unread().first(kHelloBytes));
  if (as_text(reader.raw(kMagic.size())) != kMagic)
    return fail(Errc::permission_denied, "the other side is not a leader of a job");
  handshake_.client_version = reader.fixed<std::uint32_t>();
  handshake_.client_nonce = array_of<32>(reader.raw(32));
  consumed_ += kHelloBytes;
  output_.append(as_text(handshake_.server_nonce));
  state_ = State::proof;
  return {};
}

Status SealedChannel::take_challenge() {
  handshake_.server_nonce = array_of<32>(unread());
  consumed_ += kChallengeBytes;
  output_.append(as_text(kv::client_proof(key_, handshake_)));
  state_ = State::welcome;
  return {};
}

Status SealedChannel::take_proof() {
  if (!kv::same(kv::client_proof(key_, handshake_), array_of<32>(unread()))) return stranger();
  consumed_ += kProofBytes;
  const kv::ServerTerms terms{.version = version_, .max_payload = kMostPayload};
  output_.append(ByteWriter()
                     .fixed(terms.version)
                     .fixed(terms.max_payload)
                     .raw(as_text(kv::server_proof(key_, handshake_, terms)))
                     .take());
  if (handshake_.client_version != version_) {
    return fail(Errc::version_mismatch, "the other side speaks version {} between hosts, this {}",
                handshake_.client_version, version_);
  }
  open_seals();
  return {};
}

Status SealedChannel::take_welcome() {
  ByteReader reader(unread().first(kWelcomeBytes));
  kv::ServerTerms terms;
  terms.version = reader.fixed<std::uint32_t>();
  terms.max_payload = reader.fixed<std::uint32_t>();
  if (!kv::same(kv::server_proof(key_, handshake_, terms), array_of<32>(reader.raw(32))))
    return stranger();
  consumed_ += kWelcomeBytes;
  if (terms.version != version_) {
    return fail(Errc::version_mismatch, "the other side speaks version {} between hosts, this {}",
                terms.version, version_);
  }
  open_seals();
  return {};
}

void SealedChannel::open_seals() {
  const bool connects = side_ == Side::connects;
  outgoing_.emplace(key_, handshake_,
                    connects ? kv::Direction::to_server : kv::Direction::to_client);
  incoming_.emplace(key_, handshake_,
                    connects ? kv::Direction::to_client : kv::Direction::to_server);
  state_ = State::open;
}

Result<std::optional<std::string>> SealedChannel::next() {
  HORO_TRY_STATUS(shake_hands());
  if (state_ != State::open) return std::optional<std::string>();
  const auto bytes = unread();
  if (bytes.size() < kv::kLengthBytes) return std::optional<std::string>();
  HORO_TRY(const auto length, kv::decode_length(bytes.first(kv::kLengthBytes), kMostPayload));
  if (bytes.size() < kv::kLengthBytes + length + kv::kTagBytes) return std::optional<std::string>();
  const auto payload = bytes.subspan(kv::kLengthBytes, length);
  if (!incoming_->opens(payload, bytes.subspan(kv::kLengthBytes + length, kv::kTagBytes)))
    return fail(Errc::protocol, "a frame that was changed, repeated or left out on its way");
  consumed_ += kv::kLengthBytes + length + kv::kTagBytes;
  return std::optional(std::string(as_text(payload)));
}

void SealedChannel::send(std::string_view payload) {
  kv::append_frame(output_, payload, *outgoing_);
}

void SealedChannel::sent(std::size_t n) {
  sent_ += n;
  if (sent_ != output_.size()) return;
  output_.clear();
  if (output_.capacity() > kKept) output_.shrink_to_fit();
  sent_ = 0;
}

}  // namespace horo::runtime::tree
