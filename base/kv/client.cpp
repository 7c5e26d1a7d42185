// SPDX-License-Identifier: Apache-2.0
#include "base/kv/client.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/kv/kv_messages.hpp"
#include "base/kv/socket.hpp"

namespace horo::kv {

namespace {

/// For the question which keys are missing, which a server answers at once.
constexpr Duration kDiagnosisTime = std::chrono::seconds(1);

Status receive_all(Socket& socket, std::span<std::uint8_t> buffer, Deadline deadline) {
  while (!buffer.empty()) {
    HORO_TRY(const std::size_t n, socket.receive(buffer, deadline));
    if (n == 0) return fail(Errc::peer_lost, "connection closed by the server");
    buffer = buffer.subspan(n);
  }
  return {};
}

/// A server closes the connection without a reason. Replaces that error with what it means at this
/// step of the handshake.
Status explain_close(Status status, std::string_view meaning) {
  if (status || status.error().code != Errc::peer_lost) return status;
  return fail(Errc::permission_denied, "{}", meaning);
}

struct Agreed {
  Handshake handshake;
  ServerTerms terms;
};

Result<Agreed> shake_hands(Socket& socket, const Secret& secret, Deadline deadline) {
  Agreed agreed;
  auto& handshake = agreed.handshake;
  handshake.client_version = kVersion;
  HORO_TRY(handshake.client_nonce, make_nonce());
  const auto hello = encode(Hello{.client_nonce = handshake.client_nonce});
  HORO_TRY_STATUS(explain_close(socket.send(as_bytes(hello), deadline),
                                "closed the connection at once; is it a horo key-value server?"));
  HORO_TRY_STATUS(explain_close(receive_all(socket, handshake.server_nonce, deadline),
                                "closed the connection at once; is it a horo key-value server?"));
  const Proof proof = client_proof(secret, handshake);
  constexpr std::string_view kRefused =
      "does not accept this job's secret; the address may be that of another job";
  HORO_TRY_STATUS(explain_close(socket.send(proof, deadline), kRefused));
  std::array<std::uint8_t, kWelcomeBytes> bytes{};
  HORO_TRY_STATUS(explain_close(receive_all(socket, bytes, deadline), kRefused));
  HORO_TRY(const Welcome welcome, decode_welcome(bytes));
  agreed.terms = welcome.terms;
  if (!same(welcome.proof, server_proof(secret, handshake, agreed.terms))) {
    return fail(Errc::permission_denied,
                "does not know this job's secret; another program listens at this address");
  }
  if (agreed.terms.version != kVersion) {
    return fail(
        Errc::version_mismatch,
        "speaks version {} of the protocol, this process version {}; install the same horo on "
        "launcher and ranks",
        agreed.terms.version, kVersion);
  }
  if (agreed.terms.max_payload > kMaxPayload) {
    return fail(Errc::protocol, "allows frames of {} bytes; at most {} make sense",
                agreed.terms.max_payload, kMaxPayload);
  }
  return agreed;
}

}  // namespace

class Client::Connection {
 public:
  Connection(std::string name, Socket socket, const Secret& secret, const Agreed& agreed)
      : name_(std::move(name)),
        max_payload_(agreed.terms.max_payload),
        socket_(std::move(socket)),
        outgoing_(secret, agreed.handshake, Direction::to_server),
        incoming_(secret, agreed.handshake, Direction::to_client) {}

  /// Sends one request and returns its answer; an answer that is an error becomes ours.
  Result<Response> ask(Request request, const WaitLimit& limit) {
    if (broken_) return Failure(*broken_);
    // The server still holds a get that had to wait too long here: it is not sent again, so that an
    // answer that takes longer than one call waits is not lost.
    const bool again = request.op == Op::get && awaited_ == request.keys.front();
    awaited_.reset();
    request.id = again ? last_id_ : ++last_id_;
    if (!again) HORO_TRY_STATUS(send({&request, 1}, limit.deadline));
    return answer_to(request, limit);
  }

  /// Sends both requests in one message, and returns the answer to the second.
  Result<Response> ask_both(std::array<Request, 2> requests, const WaitLimit& limit) {
    if (broken_) return Failure(*broken_);
    awaited_.reset();
    for (auto& request : requests) request.id = ++last_id_;
    HORO_TRY_STATUS(send(requests, limit.deadline));
    HORO_TRY_STATUS(answer_to(requests.front(), limit));
    return answer_to(requests.back(), limit);
  }

  const std::string& name() const { return name_; }

  const Socket& socket() const { return socket_; }

  Released release() {
    return {.descriptor = socket_.release(),
            .seals = {.outgoing = std::move(outgoing_), .incoming = std::move(incoming_)}};
  }

 private:
  Result<Response> answer_to(const Request& request, const WaitLimit& limit) {
    while (true) {
      auto response = next_response(limit);
      if (!response) {
        const auto code = response.error().code;
        if (code != Errc::timed_out && code != Errc::cancelled)
          return give_up(std::move(response).error());
        if (request.op == Op::get) awaited_ = request.keys.front();
        return Failure(std::move(response).error());
      }
      if (response->id != request.id) continue;  // The late answer to a call that timed out.
      if (response->status != Errc::ok)
        return fail(response->status, "{}: {}", name_, response->value);
      if (response->op != request.op) {
        return give_up({Errc::protocol, "the answer is to another request"});
      }
      return response;
    }
  }

  Status send(std::span<const Request> requests, Deadline deadline) {
    std::vector<std::string> payloads;
    for (const auto& request : requests) {
      HORO_TRY(payloads.emplace_back(), encode(request));
      const auto size = payloads.back().size();
      if (size <= max_payload_) continue;
      return fail(
          Errc::resource_exhausted,
          "{}: key '{}' with a value of {} bytes makes a frame of {} bytes; the server allows {}; "
          "split the value",
          name_, request.keys.front(), request.value.size(), size, max_payload_);
    }
    std::string frames;
    for (const auto& payload : payloads) append_frame(frames, payload, outgoing_);
    // After a partial frame the connection is useless: the server would read the next one as its
    // rest.
    if (auto sent = socket_.send(as_bytes(frames), deadline); !sent) {
      return give_up(std::move(sent).error());
    }
    return {};
  }

  /// Takes the next whole frame. When the limit ends the wait, the part that has arrived is kept.
  Result<Response> next_response(const WaitLimit& limit) {
    HORO_TRY_STATUS(fill(kLengthBytes, limit));
    // An answer may be larger than the largest request that the server takes.
    HORO_TRY(const std::size_t length,
             decode_length(BytesView(input_).first(kLengthBytes), kMaxPayload));
    const std::size_t whole = kLengthBytes + length + kTagBytes;
    HORO_TRY_STATUS(fill(whole, limit));
    const auto frame = std::span(input_).first(whole);
    const auto payload = frame.subspan(kLengthBytes, length);
    if (!incoming_.opens(payload, frame.last(kTagBytes))) {
      return fail(Errc::protocol, "an answer does not carry the seal of this connection");
    }
    auto response = decode_response(payload);
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(whole));
    return response;
  }

  /// Allocates for the bytes that arrive, not for those that a length claims.
  Status fill(std::size_t wanted, const WaitLimit& limit) {
    constexpr std::size_t kStep = std::size_t{64} << 10U;
    while (input_.size() < wanted) {
      const std::size_t have = input_.size();
      input_.resize(have + std::min(wanted - have, kStep));
      auto received = socket_.receive(std::span(input_).subspan(have), limit);
      input_.resize(have + (received ? *received : 0));
      if (!received) return Failure(std::move(received).error());
      if (*received == 0) return fail(Errc::peer_lost, "the server closed the connection");
    }
    return {};
  }

  Failure give_up(Error error) {
    socket_.close();
    broken_ = std::move(error).context(name_);
    return Failure(*broken_);
  }

  const std::string name_;  ///< For messages.
  const std::size_t max_payload_;

  Socket socket_;
  Seal outgoing_;
  Seal incoming_;
  std::vector<std::uint8_t> input_;
  std::uint32_t last_id_ = 0;
  std::optional<std::string> awaited_;  ///< The key of the last request, a get without an answer.
  std::optional<Error> broken_;
};

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

Client::~Client() = default;
Client::Client(Client&& other) noexcept = default;
Client& Client::operator=(Client&& other) noexcept = default;

Result<Client> Client::connect(std::string_view address, const Secret& secret, Deadline deadline) {
  HORO_TRY(const Address where, parse_address(address));
  auto name = fmt::format("key-value server at {}", to_string(where));
  HORO_TRY(Socket socket, Socket::connect(where, deadline).context(name));
  HORO_TRY(const Agreed agreed, shake_hands(socket, secret, deadline).context(name));
  return Client(std::make_unique<Connection>(std::move(name), std::move(socket), secret, agreed));
}

std::string Client::own_host() const {
  return connection_->socket().own_host();
}

std::string Client::server_host() const {
  return connection_->socket().peer_host();
}

Status Client::set(std::string_view key, std::string_view value, Deadline deadline) {
  auto answer = connection_->ask(
      {.op = Op::set, .keys = {std::string(key)}, .value = std::string(value)}, deadline);
  if (!answer) return Failure(std::move(answer).error());
  return {};
}

namespace {

Result<std::string> value_of(std::string_view key, Result<Response> answer,
                             const std::string& client) {
  if (answer) return std::move(answer->value);
  auto error = std::move(answer).error();
  if (error.code != Errc::timed_out) return Failure(std::move(error));
  return fail(Errc::timed_out, "{}: timed out waiting for key '{}'; no process has set it", client,
              key);
}

}  // namespace

Result<std::string> Client::get(std::string_view key, const WaitLimit& limit) {
  return value_of(key, connection_->ask({.op = Op::get, .keys = {std::string(key)}}, limit),
                  connection_->name());
}

Result<std::string> Client::set_then_get(std::string_view key, std::string_view value,
                                         std::string_view awaited, const WaitLimit& limit) {
  std::array<Request, 2> both{
      Request{.op = Op::set, .keys = {std::string(key)}, .value = std::string(value)},
      Request{.op = Op::get, .keys = {std::string(awaited)}}};
  return value_of(awaited, connection_->ask_both(std::move(both), limit), connection_->name());
}

Result<std::optional<std::string>> Client::find(std::string_view key, Deadline deadline) {
  HORO_TRY(Response answer,
           connection_->ask({.op = Op::find, .keys = {std::string(key)}}, deadline));
  if (!answer.present) return std::optional<std::string>{};
  return std::optional(std::move(answer.value));
}

Status Client::wait(std::span<const std::string> keys, Deadline deadline) {
  if (keys.empty()) return {};
  const std::vector<std::string> names(keys.begin(), keys.end());
  auto answer = connection_->ask({.op = Op::wait, .keys = names}, deadline);
  if (answer) return {};
  auto error = std::move(answer).error();
  if (error.code != Errc::timed_out) return Failure(std::move(error));
  if (keys.size() > 1) {
    const auto soon = Deadline::in(SteadyClock::instance(), kDiagnosisTime);
    auto missing = connection_->ask({.op = Op::missing, .keys = names}, soon);
    if (missing && missing->number > 0) {
      return fail(Errc::timed_out, "{}: timed out waiting for key '{}'; {} of {} keys are missing",
                  connection_->name(), missing->value, missing->number, keys.size());
    }
  }
  return fail(
      Errc::timed_out, "{}: timed out waiting for key '{}'{}", connection_->name(), keys.front(),
      keys.size() == 1 ? "; no process has set it" : fmt::format(" and {} more", keys.size() - 1));
}

Result<std::int64_t> Client::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  HORO_TRY(const Response answer,
           connection_->ask({.op = Op::add, .keys = {std::string(key)}, .delta = delta}, deadline));
  return answer.number;
}

Result<Client::Swap> Client::compare_and_set(std::string_view key,
                                             std::optional<std::string_view> expected,
                                             std::string_view desired, Deadline deadline) {
  Request request{
      .op = Op::compare_and_set, .keys = {std::string(key)}, .value = std::string(desired)};
  if (expected) request.expected = std::string(*expected);
  HORO_TRY(Response answer, connection_->ask(std::move(request), deadline));
  Swap swap{.swapped = answer.swapped};
  if (answer.present) swap.value = std::move(answer.value);
  return swap;
}

Client::Released Client::release() && {
  return connection_->release();
}

Result<std::int64_t> Client::erase(std::span<const std::string> keys, Deadline deadline) {
  if (keys.empty()) return 0;
  HORO_TRY(const Response answer,
           connection_->ask({.op = Op::erase, .keys = {keys.begin(), keys.end()}}, deadline));
  return answer.number;
}

}  // namespace horo::kv
