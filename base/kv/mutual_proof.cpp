// SPDX-License-Identifier: Apache-2.0
#include "base/kv/mutual_proof.hpp"

#include <algorithm>
#include <utility>

#include "base/kv/kv_messages.hpp"

namespace horo::kv {

namespace {

/// Set in the version of an end that encrypts.
constexpr std::uint32_t kEncrypts = std::uint32_t{1} << 31U;

Nonce nonce_of(BytesView bytes) {
  Nonce nonce{};
  std::copy_n(bytes.begin(), std::min(nonce.size(), bytes.size()), nonce.begin());
  return nonce;
}

Failure stranger() {
  return fail(Errc::permission_denied, "the other side does not know this job's secret");
}

}  // namespace

MutualProof MutualProof::connecting(const ProvenService& service, const Secret& key,
                                    const Nonce& nonce, std::string_view greeting) {
  MutualProof made(service, State::challenge);
  made.key_ = key;
  made.handshake_.client_version = made.version();
  made.handshake_.client_nonce = nonce;
  made.greeting_ = greeting;
  made.output_ = ByteWriter()
                     .raw(service.magic)
                     .fixed(made.version())
                     .raw(as_text(nonce))
                     .raw(greeting)
                     .take();
  return made;
}

MutualProof MutualProof::accepting(const ProvenService& service, KeyOf key_of, const Nonce& nonce) {
  MutualProof made(service, State::hello);
  made.key_of_ = std::move(key_of);
  made.handshake_.server_nonce = nonce;
  return made;
}

std::size_t MutualProof::wanted() const {
  switch (state_) {
    case State::hello:
      return kHelloBytes + service_.greeting;
    case State::challenge:
      return kChallengeBytes;
    case State::proof:
      return kProofBytes;
    case State::welcome:
      return kWelcomeBytes;
    case State::open:
      break;
  }
  return 0;
}

std::size_t MutualProof::room() const {
  return wanted() - std::min(wanted(), input_.size());
}

Status MutualProof::feed(BytesView bytes) {
  input_.append(as_text(bytes.first(std::min(bytes.size(), room()))));
  if (room() != 0 || open()) return {};
  auto status = take();
  input_.clear();
  return status;
}

Status MutualProof::take() {
  switch (state_) {
    case State::hello:
      return take_hello();
    case State::challenge:
      return take_challenge();
    case State::proof:
      return take_proof();
    case State::welcome:
      return take_welcome();
    case State::open:
      break;
  }
  return {};
}

Status MutualProof::take_hello() {
  ByteReader reader(input_);
  if (as_text(reader.raw(service_.magic.size())) != service_.magic)
    return fail(Errc::permission_denied, "the other side is not {}", service_.peer);
  handshake_.client_version = reader.fixed<std::uint32_t>();
  handshake_.client_nonce = nonce_of(reader.raw(Nonce{}.size()));
  greeting_ = as_text(reader.raw(service_.greeting));
  HORO_TRY(key_, key_of_(as_bytes(greeting_)));
  output_.append(as_text(handshake_.server_nonce));
  state_ = State::proof;
  return {};
}

Status MutualProof::take_challenge() {
  handshake_.server_nonce = nonce_of(as_bytes(input_));
  output_.append(as_text(client_proof(key_, handshake_)));
  state_ = State::welcome;
  return {};
}

Status MutualProof::take_proof() {
  if (!same(client_proof(key_, handshake_), nonce_of(as_bytes(input_)))) return stranger();
  const ServerTerms terms{.version = version(), .max_payload = service_.max_payload};
  output_.append(encode(Welcome{.terms = terms, .proof = server_proof(key_, handshake_, terms)}));
  HORO_TRY_STATUS(same_version(handshake_.client_version));
  state_ = State::open;
  return {};
}

Status MutualProof::take_welcome() {
  HORO_TRY(const auto welcome, decode_welcome(as_bytes(input_)));
  if (!same(server_proof(key_, handshake_, welcome.terms), welcome.proof)) return stranger();
  HORO_TRY_STATUS(same_version(welcome.terms.version));
  state_ = State::open;
  return {};
}

std::uint32_t MutualProof::version() const {
  return service_.version | (service_.encryption == Encryption::on ? kEncrypts : 0);
}

Status MutualProof::same_version(std::uint32_t theirs) const {
  if (theirs == version()) return {};
  if ((theirs & ~kEncrypts) != service_.version) {
    return fail(Errc::version_mismatch, "the other side speaks version {} between {}, this {}",
                theirs & ~kEncrypts, service_.between, service_.version);
  }
  const bool we = service_.encryption == Encryption::on;
  return fail(Errc::mismatch,
              "the other side {}; HORO_ENCRYPT (--encrypt) must be the same on all ranks",
              we ? "does not encrypt, and this side does" : "encrypts, and this side does not");
}

}  // namespace horo::kv
