// SPDX-License-Identifier: Apache-2.0
#include "base/kv/wire.hpp"

#include <algorithm>
#include <concepts>
#include <string_view>
#include <utility>

namespace horo::kv {

namespace {

constexpr std::string_view kMagic{"horo-kv\0", 8};
constexpr std::uint8_t kResponseBit = 0x80;

class Writer {
 public:
  template <std::unsigned_integral T>
  Writer& number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8U * i))));
    }
    return *this;
  }

  Writer& raw(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }

  Writer& raw(BytesView bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
  }

  Writer& key(std::string_view key) {
    return number(static_cast<std::uint16_t>(key.size())).raw(key);
  }

  Writer& value(std::string_view value) {
    return number(static_cast<std::uint32_t>(value.size())).raw(value);
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Takes fields off the front. After the first that does not fit, everything is empty and `good`
/// stays false, so that a decoder checks once.
class Reader {
 public:
  explicit Reader(BytesView bytes) : rest_(bytes) {}

  BytesView raw(std::size_t n) {
    if (n > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const auto head = rest_.first(n);
    rest_ = rest_.subspan(n);
    return head;
  }

  template <std::unsigned_integral T>
  T number() {
    std::uint64_t value = 0;
    std::size_t i = 0;
    for (const auto byte : raw(sizeof(T))) value |= std::uint64_t{byte} << (8U * i++);
    return static_cast<T>(value);
  }

  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) good_ = false;
    return value == 1;
  }

  std::string text(std::size_t n) {
    const auto bytes = raw(n);
    return {bytes.begin(), bytes.end()};
  }

  std::string key() {
    const auto n = number<std::uint16_t>();
    if (n == 0 || n > kMaxKeyBytes) good_ = false;
    return text(n);
  }

  std::string value() { return text(number<std::uint32_t>()); }

  template <std::size_t N>
  std::array<std::uint8_t, N> array() {
    std::array<std::uint8_t, N> out{};
    const auto bytes = raw(N);
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
  }

  bool good() const { return good_; }

  /// All fields fitted and nothing is left.
  bool finished() const { return good_ && rest_.empty(); }

  std::size_t left() const { return rest_.size(); }

 private:
  BytesView rest_;
  bool good_ = true;
};

bool has_many_keys(Op op) {
  return op == Op::wait || op == Op::missing || op == Op::erase;
}

std::optional<Op> to_op(std::uint8_t byte) {
  if (byte < static_cast<std::uint8_t>(Op::set) || byte > static_cast<std::uint8_t>(Op::erase)) {
    return std::nullopt;
  }
  return static_cast<Op>(byte);
}

Status check_keys(const Request& request) {
  if (request.keys.empty()) return fail(Errc::invalid_argument, "no key given; give at least one");
  const std::size_t most = has_many_keys(request.op) ? kMaxKeysPerRequest : 1;
  if (request.keys.size() > most) {
    return fail(Errc::invalid_argument, "{} keys in one request; at most {} are allowed",
                request.keys.size(), most);
  }
  for (const auto& key : request.keys) {
    if (key.empty() || key.size() > kMaxKeyBytes) {
      return fail(Errc::invalid_argument, "key '{}' has {} bytes; a key has 1 to {}",
                  key.substr(0, 64), key.size(), kMaxKeyBytes);
    }
  }
  return {};
}

}  // namespace

std::string encode(const Hello& hello) {
  return Writer{}.raw(kMagic).number(hello.version).raw(BytesView(hello.client_nonce)).take();
}

std::string encode(const Welcome& welcome) {
  Writer writer;
  writer.number(welcome.terms.version)
      .number(welcome.terms.max_payload)
      .raw(BytesView(welcome.proof));
  return writer.take();
}

Result<Hello> decode_hello(BytesView bytes) {
  Reader reader(bytes);
  const auto magic = reader.text(kMagic.size());
  Hello hello{.version = reader.number<std::uint32_t>(), .client_nonce = reader.array<32>()};
  if (!reader.finished() || magic != kMagic) return fail(Errc::protocol, "not a key-value hello");
  return hello;
}

Result<Welcome> decode_welcome(BytesView bytes) {
  Reader reader(bytes);
  Welcome welcome;
  welcome.terms.version = reader.number<std::uint32_t>();
  welcome.terms.max_payload = reader.number<std::uint32_t>();
  welcome.proof = reader.array<32>();
  if (!reader.finished()) return fail(Errc::protocol, "not a key-value welcome");
  return welcome;
}

Result<std::string> encode(const Request& request) {
  HORO_TRY_STATUS(check_keys(request));
  const std::size_t value_bytes =
      request.value.size() + (request.expected ? request.expected->size() : 0);
  if (value_bytes > kMaxPayload - kMaxKeyBytes - 64) {
    return fail(Errc::resource_exhausted,
                "value of key '{}' has {} bytes; at most {} fit in a frame", request.keys.front(),
                value_bytes, kMaxPayload - kMaxKeyBytes - 64);
  }
  Writer writer;
  writer.number(static_cast<std::uint8_t>(request.op)).number(request.id);
  if (has_many_keys(request.op)) {
    writer.number(static_cast<std::uint32_t>(request.keys.size()));
  }
  for (const auto& key : request.keys) writer.key(key);
  switch (request.op) {
    case Op::set:
      writer.value(request.value);
      break;
    case Op::add:
      writer.number(static_cast<std::uint64_t>(request.delta));
      break;
    case Op::compare_and_set:
      writer.number(std::uint8_t{request.expected.has_value()});
      writer.value(request.expected.value_or("")).value(request.value);
      break;
    case Op::find:
    case Op::get:
    case Op::wait:
    case Op::missing:
    case Op::erase:
      break;
  }
  return writer.take();
}

Result<Request> decode_request(BytesView payload) {
  Reader reader(payload);
  const auto op = to_op(reader.number<std::uint8_t>());
  if (!op) return fail(Errc::protocol, "unknown request");
  Request request{.op = *op, .id = reader.number<std::uint32_t>()};
  const std::size_t count = has_many_keys(*op) ? reader.number<std::uint32_t>() : 1;
  if (count == 0 || count > kMaxKeysPerRequest) {
    return fail(Errc::protocol, "request with {} keys", count);
  }
  for (std::size_t i = 0; i < count && reader.good(); ++i) request.keys.push_back(reader.key());
  switch (*op) {
    case Op::set:
      request.value = reader.value();
      break;
    case Op::add:
      request.delta = static_cast<std::int64_t>(reader.number<std::uint64_t>());
      break;
    case Op::compare_and_set: {
      const bool has_expected = reader.flag();
      auto expected = reader.value();
      if (!has_expected && !expected.empty()) {
        return fail(Errc::protocol, "request expects a value and none");
      }
      if (has_expected) request.expected = std::move(expected);
      request.value = reader.value();
      break;
    }
    case Op::find:
    case Op::get:
    case Op::wait:
    case Op::missing:
    case Op::erase:
      break;
  }
  if (!reader.finished())
    return fail(Errc::protocol, "request of {} bytes makes no sense", payload.size());
  return request;
}

std::string encode_head(const Response& response, std::size_t value_size) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(static_cast<std::uint8_t>(response.op) | kResponseBit));
  writer.number(response.id).number(static_cast<std::uint8_t>(response.status));
  const unsigned flags = (response.swapped ? 1U : 0U) | (response.present ? 2U : 0U);
  writer.number(static_cast<std::uint8_t>(flags));
  writer.number(static_cast<std::uint64_t>(response.number));
  writer.number(static_cast<std::uint32_t>(value_size));
  return writer.take();
}

std::string encode(const Response& response) {
  return encode_head(response, response.value.size()) + response.value;
}

Result<Response> decode_response(BytesView payload) {
  Reader reader(payload);
  const auto kind = reader.number<std::uint8_t>();
  const auto op = to_op(static_cast<std::uint8_t>(kind & ~kResponseBit));
  if ((kind & kResponseBit) == 0 || !op) return fail(Errc::protocol, "unknown response");
  Response response{.op = *op, .id = reader.number<std::uint32_t>()};
  response.status = static_cast<Errc>(reader.number<std::uint8_t>());
  const auto flags = reader.number<std::uint8_t>();
  response.swapped = (flags & 1U) != 0;
  response.present = (flags & 2U) != 0;
  response.number = static_cast<std::int64_t>(reader.number<std::uint64_t>());
  response.value = reader.value();
  if (!reader.finished() || flags > 3 || name(response.status) == "unknown") {
    return fail(Errc::protocol, "response of {} bytes makes no sense", payload.size());
  }
  return response;
}

Result<std::size_t> decode_length(BytesView bytes, std::size_t max_payload) {
  Reader reader(bytes);
  const std::size_t length = reader.number<std::uint32_t>();
  if (!reader.finished() || length == 0 || length > max_payload) {
    return fail(Errc::protocol, "frame claims {} bytes; 1 to {} are allowed", length, max_payload);
  }
  return length;
}

std::string encode_length(std::size_t payload) {
  return Writer{}.number(static_cast<std::uint32_t>(payload)).take();
}

void append_frame(std::string& out, std::string_view payload, Seal& seal) {
  const Tag tag = seal.next(as_bytes(payload));
  out.reserve(out.size() + kLengthBytes + payload.size() + tag.size());
  out.append(encode_length(payload.size())).append(payload);
  out.append(tag.begin(), tag.end());
}

}  // namespace horo::kv
