// SPDX-License-Identifier: Apache-2.0
#include "base/kv/kv_messages.hpp"

#include <string_view>
#include <utility>

#include "base/codec/wire_message.hpp"

namespace horo::kv {

namespace {

constexpr std::string_view kMagic{"horo-kv\0", 8};
constexpr std::size_t kMaxValues =
    kMaxPayload - kMaxKeyBytes - 64;  ///< Bytes of a request's values.

constexpr wire::Text<std::uint16_t> kKey{.least = 1, .most = kMaxKeyBytes};
constexpr wire::Text<std::uint32_t> kValue{};

/// The bytes that begin a protocol. The field is not stored.
struct Magic {
  template <typename T>
  static void write(ByteWriter& out, const T&) {
    out.raw(kMagic);
  }

  template <typename T>
  static void read(ByteReader& in, T&) {
    if (in.text(kMagic.size()) != kMagic) in.refuse("is not that of a key-value client");
  }
};

/// The only key of a request that has one.
struct OneKey {
  static void write(ByteWriter& out, const std::vector<std::string>& keys) {
    kKey.write(out, keys.front());
  }

  static void read(ByteReader& in, std::vector<std::string>& keys) {
    kKey.read(in, keys.emplace_back());
  }
};

/// A flag, and a value that is empty when the flag is 0.
struct OptionalValue {
  static void write(ByteWriter& out, const std::optional<std::string>& value) {
    wire::Bool{}.write(out, value.has_value());
    kValue.write(out, value ? std::string_view(*value) : "");
  }

  static void read(ByteReader& in, std::optional<std::string>& value) {
    bool present = false;
    wire::Bool{}.read(in, present);
    kValue.read(in, value.emplace());
    if (present) return;
    if (!value->empty()) in.refuse("is both expected and not");
    value.reset();
  }
};

/// The operation of a response: that of its request, with the highest bit set.
struct AnsweredOp {
  static constexpr std::uint8_t kBit = 0x80;

  static void write(ByteWriter& out, Op op) {
    out.fixed(static_cast<std::uint8_t>(static_cast<std::uint8_t>(op) | kBit));
  }

  static void read(ByteReader& in, Op& op) {
    const auto byte = in.fixed<std::uint8_t>();
    const auto number = static_cast<std::uint8_t>(byte & ~kBit);
    if ((byte & kBit) == 0 || number < static_cast<std::uint8_t>(Op::set) ||
        number > static_cast<std::uint8_t>(Op::erase))
      return in.refuse("is not an answer to a known operation");
    op = static_cast<Op>(number);
  }
};

constexpr bool has_many_keys(Op op) {
  return op == Op::wait || op == Op::missing || op == Op::erase;
}

}  // namespace

}  // namespace horo::kv

// -- The fields of each message, once for both directions ---------------------------------------

template <>
struct horo::FieldsOf<horo::kv::Hello> {
  static void visit(auto& field, auto& m) {
    field("magic", m, kv::Magic{});
    field("version", m.version, wire::Fixed{});
    field("client_nonce", m.client_nonce, wire::Octets{});
  }
};

template <>
struct horo::FieldsOf<horo::kv::Welcome> {
  static void visit(auto& field, auto& m) {
    field("version", m.terms.version, wire::Fixed{});
    field("max_payload", m.terms.max_payload, wire::Fixed{});
    field("proof", m.proof, wire::Octets{});
  }
};

template <>
struct horo::FieldsOf<horo::kv::Request> {
  static void visit(auto& field, auto& m) {
    using namespace kv;  // NOLINT(google-build-using-namespace): this is a part of it
    field("operation", m.op, wire::Choice{Op::set, Op::erase});
    field("id", m.id, wire::Fixed{});
    if (has_many_keys(m.op)) {
      field("keys", m.keys,
            wire::List<std::uint32_t, decltype(kKey)>{
                .element = kKey, .least_bytes = 3, .least = 1, .most = kMaxKeysPerRequest});
    } else {
      field("key", m.keys, OneKey{});
    }
    if (m.op == Op::add) field("delta", m.delta, wire::Fixed{});
    if (m.op == Op::compare_and_set) field("expected", m.expected, OptionalValue{});
    if (m.op == Op::set || m.op == Op::compare_and_set) field("value", m.value, kValue);
  }
};

template <>
struct horo::FieldsOf<horo::kv::Response> {
  static void visit_head(auto& field, auto& m) {
    field("operation", m.op, kv::AnsweredOp{});
    field("id", m.id, wire::Fixed{});
    field("status", m.status, wire::Choice{Errc::ok, kLastErrc});
    field("flags", std::tie(m.swapped, m.present), wire::FlagBits{});
    field("number", m.number, wire::Fixed{});
  }

  static void visit(auto& field, auto& m) {
    visit_head(field, m);
    field("value", m.value, kv::kValue);
  }
};

namespace horo::kv {

namespace {

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
  return encode_fields(hello);
}

std::string encode(const Welcome& welcome) {
  return encode_fields(welcome);
}

Result<Hello> decode_hello(BytesView bytes) {
  return decode_fields<Hello>(bytes, "a key-value hello");
}

Result<Welcome> decode_welcome(BytesView bytes) {
  return decode_fields<Welcome>(bytes, "a key-value welcome");
}

Result<std::string> encode(const Request& request) {
  HORO_TRY_STATUS(check_keys(request));
  const std::size_t values =
      request.value.size() + (request.expected ? request.expected->size() : 0);
  if (values > kMaxValues) {
    return fail(Errc::resource_exhausted,
                "value of key '{}' has {} bytes; at most {} fit in a frame", request.keys.front(),
                values, kMaxValues);
  }
  return encode_fields(request);
}

Result<Request> decode_request(BytesView payload) {
  return decode_fields<Request>(payload, "a request");
}

std::string encode_head(const Response& response, std::size_t value_size) {
  ByteWriter out;
  FieldWriter field(out);
  FieldsOf<Response>::visit_head(field, response);
  out.fixed(static_cast<std::uint32_t>(value_size));
  return out.take();
}

std::string encode(const Response& response) {
  return encode_fields(response);
}

Result<Response> decode_response(BytesView payload) {
  return decode_fields<Response>(payload, "a response");
}

Result<std::size_t> decode_length(BytesView bytes, std::size_t max_payload) {
  ByteReader in(bytes);
  const std::size_t length = in.fixed<std::uint32_t>();
  if (!in.finished() || length == 0 || length > max_payload) {
    return fail(Errc::protocol, "frame claims {} bytes; 1 to {} are allowed", length, max_payload);
  }
  return length;
}

std::string encode_length(std::size_t payload) {
  return ByteWriter{}.fixed(static_cast<std::uint32_t>(payload)).take();
}

void append_frame(std::string& out, std::string_view head, Seal& seal, std::string_view body) {
  const auto size = head.size() + body.size();
  out.reserve(out.size() + kLengthBytes + size + kTagBytes);
  out.append(encode_length(size)).append(head).append(body);
  auto* const payload = reinterpret_cast<std::uint8_t*>(out.data() + out.size() - size);
  const Tag tag = seal.close({payload, size});
  out.append(tag.begin(), tag.end());
}

bool opens(Seal& seal, std::span<char> payload, BytesView tag) {
  return seal.opens({reinterpret_cast<std::uint8_t*>(payload.data()), payload.size()}, tag);
}

}  // namespace horo::kv
