// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/channel.hpp"

#include <algorithm>

#include "base/kv/wire.hpp"

namespace horo::runtime::tree {

namespace {

constexpr std::string_view kMagic{"horo-tr\0", 8};
constexpr std::size_t kHelloBytes = 44;
constexpr std::size_t kChallengeBytes = 32;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kWelcomeBytes = 40;
constexpr std::size_t kReadAhead = 64 << 10;
constexpr std::size_t kKept = 64 << 10;  // Of a buffer that has been emptied.

template <std::size_t N>
std::array<std::uint8_t, N> array_of(BytesView bytes) {
  std::array<std::uint8_t, N> out{};
  std::copy_n(bytes.begin(), N, out.begin());
  return out;
}

std::string_view text_of(BytesView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Failure stranger() {
  return fail(Errc::permission_denied, "the other side does not know this job's secret");
}

}  // namespace

kv::Secret channel_key(const kv::Secret& secret, Epoch epoch) {
  return kv::derived_secret(secret, "horo-tree", epoch.value());
}

Channel::Channel(Side side, const kv::Secret& key, const kv::Nonce& nonce, std::uint32_t version)
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
  output_ = Writer().raw(kMagic).fixed(version).raw(text_of(nonce)).take();
}

BytesView Channel::unread() const {
  return as_bytes(std::string_view(input_).substr(consumed_));
}

std::size_t Channel::room() const {
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

void Channel::feed(BytesView bytes) {
  if (consumed_ != 0) {
    input_.erase(0, consumed_);
    consumed_ = 0;
    if (input_.empty() && input_.capacity() > kKept) input_.shrink_to_fit();
  }
  input_.append(text_of(bytes));
}

Status Channel::shake_hands() {
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

Status Channel::take_hello() {
  Reader reader(unread().first(kHelloBytes));
  if (text_of(reader.raw(kMagic.size())) != kMagic)
    return fail(Errc::permission_denied, "the other side is no leader of a job");
  handshake_.client_version = reader.fixed<std::uint32_t>();
  handshake_.client_nonce = array_of<32>(reader.raw(32));
  consumed_ += kHelloBytes;
  output_.append(text_of(handshake_.server_nonce));
  state_ = State::proof;
  return {};
}

Status Channel::take_challenge() {
  handshake_.server_nonce = array_of<32>(unread());
  consumed_ += kChallengeBytes;
  output_.append(text_of(kv::client_proof(key_, handshake_)));
  state_ = State::welcome;
  return {};
}

Status Channel::take_proof() {
  if (!kv::same(kv::client_proof(key_, handshake_), array_of<32>(unread()))) return stranger();
  consumed_ += kProofBytes;
  const kv::ServerTerms terms{.version = version_, .max_payload = kMostPayload};
  output_.append(Writer()
                     .fixed(terms.version)
                     .fixed(terms.max_payload)
                     .raw(text_of(kv::server_proof(key_, handshake_, terms)))
                     .take());
  if (handshake_.client_version != version_) {
    return fail(Errc::version_mismatch, "the other side speaks version {} between hosts, this {}",
                handshake_.client_version, version_);
  }
  open_seals();
  return {};
}

Status Channel::take_welcome() {
  Reader reader(unread().first(kWelcomeBytes));
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

void Channel::open_seals() {
  const bool connects = side_ == Side::connects;
  outgoing_.emplace(key_, handshake_,
                    connects ? kv::Direction::to_server : kv::Direction::to_client);
  incoming_.emplace(key_, handshake_,
                    connects ? kv::Direction::to_client : kv::Direction::to_server);
  state_ = State::open;
}

Result<std::optional<std::string>> Channel::next() {
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
  return std::optional(std::string(text_of(payload)));
}

void Channel::send(std::string_view payload) {
  kv::append_frame(output_, payload, *outgoing_);
}

void Channel::sent(std::size_t n) {
  sent_ += n;
  if (sent_ != output_.size()) return;
  output_.clear();
  if (output_.capacity() > kKept) output_.shrink_to_fit();
  sent_ = 0;
}

}  // namespace horo::runtime::tree
