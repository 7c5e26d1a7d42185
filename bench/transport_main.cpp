// SPDX-License-Identifier: Apache-2.0
// Two processes send one message to and fro over one connection of a transport. bench/transports
// starts one on each of two hosts and compares the times with those of other libraries.
//
//   bench_transport TRANSPORT POSITION ADDRESS DIRECTORY SECONDS OUT BYTES...
//
// The processes meet in DIRECTORY, which both see. Process 0 appends a row for each size to OUT.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "bench/harness.hpp"
#include "bench/mark_files.hpp"
#include "bench/socket_connection.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

namespace horo::bench {
namespace {

using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a program's own

constexpr std::string_view kTransports = "horo|horo-encrypt|gloo|sockets|sockets-zerocopy";

struct Job {
  std::string who;
  int position = 0;
  std::string address;    ///< This process listens there; a number.
  std::string directory;  ///< Empty at the start.
  double seconds = 1;     ///< For each size.
  std::string out;
  std::vector<std::size_t> sizes;

  int peer() const { return 1 - position; }
};

class HoroConnection final : public PeerConnection {
 public:
  static Result<std::unique_ptr<PeerConnection>> make(const Job& job) {
    const kv::Secret secret{};  // The benchmark protects nothing.
    const auto encryption = job.who == "horo-encrypt" ? kv::Encryption::on : kv::Encryption::off;
    HORO_TRY(auto endpoint, TcpEndpoint::open(job.address, job.position, secret, encryption));
    const Communicator pair{.position = job.position,
                            .members = {0, 1},
                            .name = "pair",
                            .timeout = std::chrono::seconds(30)};
    HORO_TRY(auto transport, TcpTransport::make(endpoint, pair, 1));
    const std::string own = job.directory + "/address." + std::to_string(job.position);
    if (!write_mark(own, to_string(endpoint->address()))) return fail_errno(errno, own);
    HORO_TRY(const kv::Address other, await_address(job));
    endpoint->contacts() = {{job.position, {endpoint->address()}}, {job.peer(), {other}}};
    transport->take_addresses();
    return std::unique_ptr<PeerConnection>(new HoroConnection(job.peer(), std::move(transport)));
  }

  Status send(std::span<std::byte> message) override {
    HORO_TRY(auto pending, transport_->send(described(message, sent_++)));
    return pending->wait();
  }

  Status receive(std::span<std::byte> message) override {
    HORO_TRY(auto pending, transport_->receive(described(message, received_++)));
    return pending->wait();
  }

 private:
  HoroConnection(int peer, std::unique_ptr<TcpTransport> transport)
      : peer_(peer), transport_(std::move(transport)) {}

  static Result<kv::Address> await_address(const Job& job) {
    const std::string path = job.directory + "/address." + std::to_string(job.peer());
    for (int tries = 0; tries < 3000; ++tries) {
      std::ifstream file(path);
      if (std::string text; std::getline(file, text)) return kv::parse_address(text);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return fail(Errc::timed_out, "the other process has not come: there is no {}", path);
  }

  TransportMessage described(std::span<std::byte> message, std::uint64_t tag) const {
    return {.peer = peer_, .tag = tag, .at = message.data(), .bytes = message.size()};
  }

  const int peer_;
  const std::unique_ptr<TcpTransport> transport_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

class GlooConnection final : public PeerConnection {
 public:
  explicit GlooConnection(const Job& job)
      : peer_(job.peer()), context_(std::make_shared<gloo::rendezvous::Context>(job.position, 2)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = job.address;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(job.directory);
    context_->connectFullMesh(store, device);
  }

  Status send(std::span<std::byte> message) override {
    auto buffer = context_->createUnboundBuffer(message.data(), message.size());
    buffer->send(peer_, 0);
    buffer->waitSend();
    return {};
  }

  Status receive(std::span<std::byte> message) override {
    auto buffer = context_->createUnboundBuffer(message.data(), message.size());
    buffer->recv(peer_, 0);
    buffer->waitRecv();
    return {};
  }

 private:
  const int peer_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
};

Result<std::unique_ptr<PeerConnection>> connect(const Job& job) {
  if (job.who == "gloo") return std::unique_ptr<PeerConnection>(new GlooConnection(job));
  if (job.who == "horo" || job.who == "horo-encrypt") return HoroConnection::make(job);
  if (job.who == "sockets" || job.who == "sockets-zerocopy") {
    using Sending = SocketConnection::Sending;
    const auto sending = job.who == "sockets" ? Sending::copies : Sending::zero_copy;
    return SocketConnection::make(sending, job.address, job.directory, job.position == 1);
  }
  return fail(Errc::invalid_argument, "unknown transport '{}': {}", job.who, kTransports);
}

/// Seconds from sending the message until the other process's has come.
Result<double> round_trip(PeerConnection& connection, const Job& job,
                          std::span<std::byte> message) {
  const auto begin = std::chrono::steady_clock::now();
  if (job.position == 0) HORO_TRY_STATUS(connection.send(message));
  HORO_TRY_STATUS(connection.receive(message));
  if (job.position == 1) HORO_TRY_STATUS(connection.send(message));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Process 0 decides how many round trips fit into the time, and tells the other one.
Result<std::uint64_t> agree(PeerConnection& connection, const Job& job, double one) {
  auto count = static_cast<std::uint64_t>(std::max(3.0, job.seconds / std::max(one, 1e-7)));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&count, 1));
  HORO_TRY_STATUS(job.position == 0 ? connection.send(bytes) : connection.receive(bytes));
  return count;
}

Status measure_size(PeerConnection& connection, const Job& job, std::size_t size) {
  std::vector<std::byte> message(size, std::byte{1});
  double one = 0;
  for (int i = 0; i < 3; ++i) {
    HORO_TRY(one, round_trip(connection, job, message));
  }
  HORO_TRY(const std::uint64_t count, agree(connection, job, one));
  Measurement times;
  for (std::uint64_t i = 0; i < count; ++i) {
    HORO_TRY(const double seconds, round_trip(connection, job, message));
    times.seconds.push_back(seconds / 2);
  }
  std::sort(times.seconds.begin(), times.seconds.end());
  if (job.position != 0) return {};
  return write_line(job.out, row({.name = "sizes", .counts = {size / sizeof(float)}}, times));
}

Result<Job> parse(std::span<char*> words) {
  if (words.size() < 8) {
    return fail(Errc::invalid_argument,
                "usage: bench_transport {} POSITION ADDRESS DIRECTORY SECONDS OUT BYTES...",
                kTransports);
  }
  Job job{.who = words[1],
          .position = words[2] == std::string("0") ? 0 : 1,
          .address = words[3],
          .directory = words[4],
          .seconds = std::atof(words[5]),
          .out = words[6],
          .sizes = {}};
  for (const std::string_view word : words.subspan(7)) {
    std::size_t size = 0;
    std::from_chars(word.data(), word.data() + word.size(), size);
    if (size < 4 || size % 4 != 0)
      return fail(Errc::invalid_argument, "'{}' is not a size in bytes, a multiple of 4", word);
    job.sizes.push_back(size);
  }
  return job;
}

Status run(std::span<char*> words) {
  try {
    HORO_TRY(const Job job, parse(words));
    HORO_TRY(const auto connection, connect(job));
    for (const std::size_t size : job.sizes) HORO_TRY_STATUS(measure_size(*connection, job, size));
    return {};
  } catch (const std::exception& error) {
    return fail(Errc::io, "Gloo: {}", error.what());
  }
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  const std::span words(argv, static_cast<std::size_t>(argc));
  return horo::bench::exit_code_of(horo::bench::run(words), "bench_transport");
}
