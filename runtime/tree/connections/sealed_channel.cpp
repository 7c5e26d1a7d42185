// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/sealed_channel.hpp"

#include <algorithm>

#include "base/kv/kv_messages.hpp"

namespace horo::runtime::tree {

namespace {

constexpr std::size_t kReadAhead = 64 << 10;
constexpr std::size_t kKept = 64 << 10;  // Capacity kept by an empty buffer.

kv::MutualProof proof_of(SealedChannel::Side side, const kv::Secret& key, const kv::Nonce& nonce,
                         std::uint32_t version, kv::Encryption encryption) {
  const kv::ProvenService service{.magic = std::string_view("horo-tr\0", 8),
                                  .peer = "a leader of a job",
                                  .between = "hosts",
                                  .version = version,
                                  .max_payload = kMostPayload,
                                  .encryption = encryption};
  if (side == SealedChannel::Side::connects)
    return kv::MutualProof::connecting(service, key, nonce);
  return kv::MutualProof::accepting(
      service, [key](BytesView) -> Result<kv::Secret> { return key; }, nonce);
}

}  // namespace

kv::Secret channel_key(const kv::Secret& secret, Epoch epoch) {
  return kv::derived_secret(secret, "horo-tree", epoch.value());
}

SealedChannel::SealedChannel(Side side, const kv::Secret& key, const kv::Nonce& nonce,
                             std::uint32_t version, kv::Encryption encryption)
    : side_(side),
      proof_(proof_of(side, key, nonce, version, encryption)),
      output_(proof_.output()) {
  proof_.sent(output_.size());
}

BytesView SealedChannel::unread() const {
  return as_bytes(std::string_view(input_).substr(consumed_));
}

std::size_t SealedChannel::room() const {
  if (open()) return kReadAhead;
  return proof_.room() - std::min(proof_.room(), unread().size());
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
  while (!proof_.open() && !unread().empty()) {
    const auto part = unread().first(std::min(proof_.room(), unread().size()));
    const auto status = proof_.feed(part);
    consumed_ += part.size();
    output_.append(proof_.output());
    proof_.sent(proof_.output().size());
    HORO_TRY_STATUS(status);
  }
  if (proof_.open() && !open()) protect();
  return {};
}

void SealedChannel::protect() {
  const bool connects = side_ == Side::connects;
  const auto outgoing = connects ? kv::Direction::to_server : kv::Direction::to_client;
  const auto incoming = connects ? kv::Direction::to_client : kv::Direction::to_server;
  outgoing_.emplace(proof_.key(), proof_.handshake(), outgoing);
  incoming_.emplace(proof_.key(), proof_.handshake(), incoming);
}

Result<std::optional<std::string>> SealedChannel::next() {
  HORO_TRY_STATUS(shake_hands());
  if (!open()) return std::optional<std::string>();
  const auto bytes = unread();
  if (bytes.size() < kv::kLengthBytes) return std::optional<std::string>();
  HORO_TRY(const auto length, kv::decode_length(bytes.first(kv::kLengthBytes), kMostPayload));
  if (bytes.size() < kv::kLengthBytes + length + kv::kTagBytes) return std::optional<std::string>();
  std::string payload(as_text(bytes.subspan(kv::kLengthBytes, length)));
  if (!kv::opens(*incoming_, payload, bytes.subspan(kv::kLengthBytes + length, kv::kTagBytes)))
    return fail(Errc::protocol, "a frame that was changed, repeated or left out on its way");
  consumed_ += kv::kLengthBytes + length + kv::kTagBytes;
  return std::optional(std::move(payload));
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
