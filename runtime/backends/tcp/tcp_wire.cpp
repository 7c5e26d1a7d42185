// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <vector>

namespace horo::runtime {

namespace {

/// The pieces of memory that one call of the system reads or writes.
class Pieces {
 public:
  void add(void* at, std::size_t bytes) {
    pieces_[count_++] = {at, bytes};
    bytes_ += bytes;
  }

  TcpMove write(int socket) {
    const msghdr what{.msg_iov = pieces_.data(), .msg_iovlen = count_};
    return moved(sendmsg(socket, &what, MSG_NOSIGNAL));
  }

  TcpMove read(int socket) {
    return moved(readv(socket, pieces_.data(), static_cast<int>(count_)));
  }

 private:
  TcpMove moved(ssize_t n) const {
    return {.bytes = n,
            .all = n >= 0 && static_cast<std::size_t>(n) == bytes_,
            .error = n < 0 ? errno : 0};
  }

  std::array<iovec, 4> pieces_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// The pieces of a message that have not moved yet. Its header is at `header`.
Pieces rest_of(const TcpTransfer& transfer, std::uint8_t* header) {
  Pieces pieces;
  auto skip = transfer.moved;
  if (skip < kTcpHeaderBytes) {
    pieces.add(header + skip, kTcpHeaderBytes - skip);
    skip = 0;
  } else {
    skip -= kTcpHeaderBytes;
  }
  pieces.add(transfer.message.at + skip, transfer.message.bytes - skip);
  return pieces;
}

class PlainWire final : public TcpWire {
 public:
  TcpMove write(int socket, TcpTransfer& transfer) override {
    return count(transfer, rest_of(transfer, transfer.header.data()).write(socket));
  }

  TcpMove read(int socket, TcpTransfer& transfer) override {
    return count(transfer, rest_of(transfer, came_.data()).read(socket));
  }

  bool has_begun(const TcpTransfer& transfer) const override { return transfer.moved != 0; }

 private:
  static TcpMove count(TcpTransfer& transfer, TcpMove move) {
    if (move.bytes > 0) transfer.moved += static_cast<std::uint64_t>(move.bytes);
    return move;
  }
};

constexpr std::size_t kRecord = std::size_t{64} << 10U;
constexpr std::size_t kTag = kv::RecordCipher::kTagBytes;

/// The bytes of the record that begins where `moved` bytes of the message are done.
std::size_t record_at(const TcpTransfer& transfer, std::uint64_t moved) {
  if (moved == 0) return kTcpHeaderBytes;
  return static_cast<std::size_t>(std::min<std::uint64_t>(kRecord, transfer.size() - moved));
}

class EncryptedWire final : public TcpWire {
 public:
  explicit EncryptedWire(std::unique_ptr<kv::CipherPair> ciphers) : ciphers_(std::move(ciphers)) {}

  TcpMove write(int socket, TcpTransfer& transfer) override {
    if (sent_ == sealed_ && !seal_next(transfer)) return {.bytes = -1, .error = EIO};
    Pieces pieces;
    pieces.add(out_.data() + sent_, sealed_ - sent_);
    const auto move = pieces.write(socket);
    if (move.bytes > 0) sent_ += static_cast<std::size_t>(move.bytes);
    // The message counts as moved only when the socket has it, so that its sender goes on sending.
    if (move.all) transfer.moved += std::exchange(plain_, 0);
    return move;
  }

  TcpMove read(int socket, TcpTransfer& transfer) override {
    Pieces pieces;
    // A small message needs one call: its header and its first record are asked for together.
    auto begin = transfer.moved;
    auto skip = have_;
    for (auto& tag : tags_) {
      const auto bytes = record_at(transfer, begin);
      if (skip < bytes) pieces.add(place(transfer, begin) + skip, bytes - skip);
      skip -= std::min(skip, bytes);
      pieces.add(tag.data() + skip, kTag - skip);
      skip = 0;
      begin += bytes;
      if (begin == transfer.size()) break;
    }
    const auto move = pieces.read(socket);
    if (move.bytes > 0) have_ += static_cast<std::size_t>(move.bytes);
    while (!transfer.done() && have_ >= record_at(transfer, transfer.moved) + kTag) {
      if (!open_next(transfer)) return {.bytes = -1, .error = EBADMSG};
      // After another header than the one that is due the lengths of the records are unknown.
      if (transfer.moved == kTcpHeaderBytes && came_ != transfer.header) break;
    }
    return move;
  }

  bool has_begun(const TcpTransfer& transfer) const override {
    return transfer.moved != 0 || have_ != 0;
  }

 private:
  std::uint8_t* place(TcpTransfer& transfer, std::uint64_t moved) {
    if (moved == 0) return came_.data();
    return reinterpret_cast<std::uint8_t*>(transfer.message.at) + (moved - kTcpHeaderBytes);
  }

  /// Puts what is due next into `out_`: the header and the first record, or one more record.
  bool seal_next(TcpTransfer& transfer) {
    out_.resize(kTcpHeaderBytes + kRecord + 2 * kTag);
    sent_ = sealed_ = 0;
    plain_ = 0;
    const bool with_header = transfer.moved == 0;
    if (with_header && !seal(transfer.header)) return false;
    const auto moved = transfer.moved + plain_;
    if (moved == transfer.size()) return true;
    return seal(
        {reinterpret_cast<const std::uint8_t*>(transfer.message.at) + (moved - kTcpHeaderBytes),
         record_at(transfer, moved)});
  }

  bool seal(BytesView plain) {
    if (!ciphers_->outgoing.seal(plain, out_.data() + sealed_)) return false;
    sealed_ += plain.size() + kTag;
    plain_ += plain.size();
    return true;
  }

  /// The first record of `have_` bytes is there.
  bool open_next(TcpTransfer& transfer) {
    const auto bytes = record_at(transfer, transfer.moved);
    if (!ciphers_->incoming.open({place(transfer, transfer.moved), bytes}, tags_[0])) return false;
    tags_[0] = tags_[1];
    transfer.moved += bytes;
    have_ -= bytes + kTag;
    return true;
  }

  const std::unique_ptr<kv::CipherPair> ciphers_;
  std::vector<std::uint8_t> out_;  ///< Encrypted bytes on their way to the socket.
  std::size_t sealed_ = 0;         ///< Bytes in `out_`.
  std::size_t sent_ = 0;           ///< Those of them that the socket has.
  std::size_t plain_ = 0;          ///< Bytes of the message that they are.
  std::size_t have_ = 0;           ///< Bytes of records that have come and are not yet open.
  std::array<std::array<std::uint8_t, kTag>, 2> tags_{};  ///< They belong to the next two records.
};

}  // namespace

std::unique_ptr<TcpWire> plain_wire() {
  return std::make_unique<PlainWire>();
}

std::unique_ptr<TcpWire> encrypted_wire(std::unique_ptr<kv::CipherPair> ciphers) {
  return std::make_unique<EncryptedWire>(std::move(ciphers));
}

Result<std::unique_ptr<TcpWire>> wire_after(const TcpHandshake& handshake) {
  HORO_TRY(auto ciphers, handshake.ciphers());
  return ciphers == nullptr ? plain_wire() : encrypted_wire(std::move(ciphers));
}

}  // namespace horo::runtime
