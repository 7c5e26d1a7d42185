// SPDX-License-Identifier: Apache-2.0
#include "base/kv/cipher.hpp"

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <string>
#include <utility>

#include <sodium.h>

namespace horo::kv {

namespace {

// The part of libcrypto's interface that is used here, as OpenSSL's manual gives it. It is the same
// in OpenSSL 1.1 and 3.
constexpr int kGetTag = 0x10;
constexpr int kSetTag = 0x11;
constexpr int kNameAndVersion = 0;

struct Library {
  std::string why_not;  ///< Why it cannot be used; empty: it can.
  void* (*ctx_new)() = nullptr;
  void (*ctx_free)(void* context) = nullptr;
  const void* (*aes_256_gcm)() = nullptr;
  int (*init)(void* context, const void* cipher, void* engine, const unsigned char* key,
              const unsigned char* iv, int encrypts) = nullptr;
  int (*update)(void* context, unsigned char* out, int* written, const unsigned char* in,
                int bytes) = nullptr;
  int (*finish)(void* context, unsigned char* out, int* written) = nullptr;
  int (*control)(void* context, int what, int bytes, void* at) = nullptr;
  const char* (*version)(int what) = nullptr;

  template <typename F>
  void find(void* handle, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (function == nullptr) why_not = fmt::format("it has no function {}", name);
  }

  static Library load() {
    Library found;
    void* handle = nullptr;
    for (const auto* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
      if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (handle == nullptr && found.why_not.empty()) found.why_not = dlerror();
    }
    if (handle == nullptr) return found;
    found.why_not.clear();
    found.find(handle, found.ctx_new, "EVP_CIPHER_CTX_new");
    found.find(handle, found.ctx_free, "EVP_CIPHER_CTX_free");
    found.find(handle, found.aes_256_gcm, "EVP_aes_256_gcm");
    found.find(handle, found.init, "EVP_CipherInit_ex");
    found.find(handle, found.update, "EVP_CipherUpdate");
    found.find(handle, found.finish, "EVP_CipherFinal_ex");
    found.find(handle, found.control, "EVP_CIPHER_CTX_ctrl");
    found.find(handle, found.version, "OpenSSL_version");
    return found;
  }
};

const Library& library() {
  static const Library loaded = Library::load();
  return loaded;
}

constexpr std::string_view info_of(Direction direction) {
  return direction == Direction::to_server ? "horo encrypt to server" : "horo encrypt to client";
}

}  // namespace

Status can_encrypt() {
  if (library().why_not.empty()) return {};
  return fail(Errc::unavailable,
              "--encrypt (HORO_ENCRYPT) needs OpenSSL's libcrypto on every host, and this process "
              "cannot use it: {}; install Debian's libssl3, or run without --encrypt",
              library().why_not);
}

Result<std::string> cipher_library() {
  HORO_TRY_STATUS(can_encrypt());
  return std::string(library().version(kNameAndVersion));
}

struct RecordCipher::Context {
  void* at = nullptr;

  Context() : at(library().ctx_new()) {}

  ~Context() { library().ctx_free(at); }

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  Context(Context&&) = delete;
  Context& operator=(Context&&) = delete;
};

RecordCipher::RecordCipher(std::unique_ptr<Context> context, const Secret& key,
                           std::uint64_t records_per_key)
    : context_(std::move(context)), key_(key), records_per_key_(records_per_key) {}

RecordCipher::~RecordCipher() {
  sodium_memzero(key_.data(), key_.size());
}

RecordCipher::RecordCipher(RecordCipher&& other) noexcept
    : context_(std::move(other.context_)),
      key_(other.key_),
      records_per_key_(other.records_per_key_),
      records_(other.records_),
      ready_(other.ready_) {
  sodium_memzero(other.key_.data(), other.key_.size());
}

RecordCipher& RecordCipher::operator=(RecordCipher&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(key_, other.key_);
  std::swap(records_per_key_, other.records_per_key_);
  std::swap(records_, other.records_);
  std::swap(ready_, other.ready_);
  return *this;
}

Result<RecordCipher> RecordCipher::make(const Secret& secret, const Handshake& handshake,
                                        Direction direction, std::uint64_t records_per_key) {
  HORO_TRY_STATUS(can_encrypt());
  auto context = std::make_unique<Context>();
  const auto& calls = library();
  if (context->at == nullptr ||
      calls.init(context->at, calls.aes_256_gcm(), nullptr, nullptr, nullptr, 1) != 1)
    return fail(Errc::unavailable, "libcrypto does not offer AES-256-GCM");
  std::array<std::uint8_t, 2 * sizeof(Nonce)> nonces{};
  std::copy(handshake.client_nonce.begin(), handshake.client_nonce.end(), nonces.begin());
  std::copy(handshake.server_nonce.begin(), handshake.server_nonce.end(),
            nonces.begin() + sizeof(Nonce));
  return RecordCipher(std::move(context), hkdf(secret, nonces, info_of(direction)),
                      records_per_key);
}

/// Gives the context the number of the next record, and a new key where one is due.
bool RecordCipher::begin(int encrypts) {
  if (records_ != 0 && records_ % records_per_key_ == 0) {
    key_ = hkdf(key_, {}, "horo encrypt next key");
    ready_ = false;
  }
  std::array<std::uint8_t, 12> number{};
  for (std::size_t i = 0; i < sizeof records_; ++i)
    number[i] = static_cast<std::uint8_t>(records_ >> (8U * i));
  ++records_;
  const auto* key = ready_ ? nullptr : key_.data();
  ready_ = true;
  return library().init(context_->at, nullptr, nullptr, key, number.data(), encrypts) == 1;
}

bool RecordCipher::seal(BytesView plain, std::uint8_t* out) {
  const auto& calls = library();
  auto* const context = context_->at;
  int written = 0;
  return begin(1) &&
         (plain.empty() || calls.update(context, out, &written, plain.data(),
                                        static_cast<int>(plain.size())) == 1) &&
         calls.finish(context, out + plain.size(), &written) == 1 &&
         calls.control(context, kGetTag, kTagBytes, out + plain.size()) == 1;
}

bool RecordCipher::open(std::span<std::uint8_t> bytes, BytesView tag) {
  if (tag.size() != kTagBytes) return false;
  std::array<std::uint8_t, kTagBytes> expected{};
  std::copy(tag.begin(), tag.end(), expected.begin());
  const auto& calls = library();
  auto* const context = context_->at;
  int written = 0;
  return begin(0) && calls.control(context, kSetTag, kTagBytes, expected.data()) == 1 &&
         (bytes.empty() || calls.update(context, bytes.data(), &written, bytes.data(),
                                        static_cast<int>(bytes.size())) == 1) &&
         calls.finish(context, expected.data(), &written) == 1;
}

Result<std::unique_ptr<CipherPair>> CipherPair::make(const Secret& secret,
                                                     const Handshake& handshake,
                                                     Direction outgoing) {
  const auto incoming =
      outgoing == Direction::to_server ? Direction::to_client : Direction::to_server;
  HORO_TRY(auto out, RecordCipher::make(secret, handshake, outgoing));
  HORO_TRY(auto in, RecordCipher::make(secret, handshake, incoming));
  return std::make_unique<CipherPair>(CipherPair{std::move(out), std::move(in)});
}

}  // namespace horo::kv
