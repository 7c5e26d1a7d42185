// SPDX-License-Identifier: Apache-2.0
// The connection of one worker to one peer. Messages are sent in the order in which they are
// posted, and received in the order in which the receives are posted, straight from and to their
// memory. A message that nobody has posted a receive for waits in the socket, and its sender with
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/kv/address.hpp"
#include "base/unique_fd.hpp"
#include "runtime/backends/tcp/tcp_handshake.hpp"
#include "runtime/backends/tcp/tcp_message.hpp"
#include "runtime/backends/tcp/tcp_wire.hpp"

namespace horo::runtime {

/// Thread: owner. Blocks: no.
class TcpChannel {
 public:
  enum class State {
    none,        ///< No connection yet.
    connecting,  ///< This side connects, or proves its identity.
    open,
    lost,  ///< why() says why. Nothing moves any more.
  };

  State state() const { return state_; }

  const std::string& why() const { return why_; }

  /// -1: none.
  int descriptor() const { return socket_.value(); }

  // -- Making the connection --------------------------------------------------------------------

  /// Begins to connect, as a new try if the last one failed. `from`: an address of this host, a
  /// number; empty: any.
  void connect(const kv::Address& address, TcpHandshake handshake, const std::string& from = {});

  /// Takes a connection that the peer has made.
  void adopt(ProvenSocket socket);

  /// A try to connect ended before the peer had proven anything, as it does when a flood of
  /// strangers crowds this one out. The owner connects again.
  bool wants_retry() const { return state_ == State::none && tries_ > 0; }

  int tries() const { return tries_; }

  /// While connecting: the other host has answered, though not yet the rank on it.
  bool is_reached() const { return connected_; }

  /// While connecting: "a connection from ADDRESS to ADDRESS".
  std::string describe_try() const;

  // -- Messages ---------------------------------------------------------------------------------

  /// The transfer stays where it is until it is done or the channel is lost.
  void post_send(TcpTransfer& transfer);

  void post_receive(TcpTransfer& transfer) { receives_.push_back(&transfer); }

  bool idle() const { return sends_.empty() && receives_.empty(); }

  /// `events` are the bits that epoll has found, such as EPOLLIN.
  void note_events(std::uint32_t events);

  /// Moves what can move now.
  void advance();

  /// When a byte moved last, or the connection changed, as far as advance() was told the time.
  std::uint64_t moves() const { return moves_; }

  void lose(std::string why);

 private:
  void advance_connecting();
  void shake_hands();
  void fail_to_connect(std::string why);
  void write_all();
  void read_all();
  bool read_some(TcpTransfer& transfer);
  bool check_header(TcpTransfer& transfer);
  void lose_errno(int error);
  void lose_changed();

  State state_ = State::none;
  std::string why_;
  UniqueFd socket_;
  std::unique_ptr<TcpWire> wire_;  ///< Once open.
  std::optional<TcpHandshake> handshake_;
  kv::Address address_;
  int tries_ = 0;
  bool connected_ = false;
  bool readable_ = false;
  bool writable_ = false;
  bool ending_ = false;  ///< The peer sends no more than what has arrived.
  std::uint64_t moves_ = 0;
  std::deque<TcpTransfer*> sends_;
  std::deque<TcpTransfer*> receives_;
};

}  // namespace horo::runtime
