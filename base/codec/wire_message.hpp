// SPDX-License-Identifier: Apache-2.0
// One row per message: its number on the wire, its name, its fields and what must hold between
// them. Writing, reading, checking and printing are derived from the row.
//
//   struct Signal {
//     int number = 0;
//
//     static constexpr MessageRow kRow{3, "signal"};
//     static void fields(auto& field, auto& m) { field("number", m.number, wire::Fixed{}); }
//     static std::string_view check(const Signal& m) {          // optional
//       return m.number < 1 || m.number > 64 ? "is no signal" : "";
//     }
//   };
//
// A protocol is a variant of such messages; read_message and write_message do the rest. A message
// that travels alone needs no row: encode_fields and decode_fields are for it. `fields`
// may look at a field that it has visited already, such as a kind that decides which fields follow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/codec/bytes.hpp"
#include "base/codec/wire_forms.hpp"
#include "base/result.hpp"

namespace horo {

struct MessageRow {
  std::uint32_t type = 0;  ///< On the wire; different for each message of a protocol.
  std::string_view name;   ///< For errors and logs.
};

/// The fields of T in their order on the wire: T::fields, or a specialisation for a T that does not
/// know the protocol.
template <typename T>
struct FieldsOf {
  static void visit(auto& field, auto& value) { T::fields(field, value); }
};

/// Writes each field that it visits.
class FieldWriter {
 public:
  explicit FieldWriter(ByteWriter& out) : out_(out) {}

  template <typename T, typename Form>
  void operator()(std::string_view /*name*/, const T& value, const Form& form) {
    form.write(out_, value);
  }

 private:
  ByteWriter& out_;
};

/// Reads each field that it visits; the reader's problem names the first one that does not fit.
class FieldReader {
 public:
  explicit FieldReader(ByteReader& in) : in_(in) {}

  template <typename T, typename Form>
  void operator()(std::string_view name, T&& value, const Form& form) {
    if (!in_.good()) return;
    form.read(in_, value);
    if (!in_.good()) in_.blame(name);
  }

 private:
  ByteReader& in_;
};

namespace wire {

/// The fields of a value within a message, one after the other.
struct Fields {
  template <typename T>
  void write(ByteWriter& out, const T& value) const {
    FieldWriter field(out);
    FieldsOf<T>::visit(field, value);
  }

  template <typename T>
  void read(ByteReader& in, T& value) const {
    FieldReader field(in);
    FieldsOf<T>::visit(field, value);
  }
};

/// A field that is not printed: a secret, or a value of the user's environment.
template <typename Form>
struct Hidden : Form {};

template <typename Form>
Hidden(Form) -> Hidden<Form>;

}  // namespace wire

/// Prints each field that it visits as "name=value", for people. Long texts and lists are cut.
class FieldPrinter {
 public:
  explicit FieldPrinter(std::string& out) : out_(out) {}

  template <typename T, typename Form>
  void operator()(std::string_view name, const T& value, const Form& /*form*/) {
    out_ += fmt::format(" {}=", name);
    print(value);
  }

  template <typename T, typename Form>
  void operator()(std::string_view name, const T& /*value*/, const wire::Hidden<Form>& /*form*/) {
    out_ += fmt::format(" {}=(hidden)", name);
  }

 private:
  static constexpr std::size_t kMostText = 64;
  static constexpr std::size_t kMostEntries = 4;

  void print(std::string_view text) {
    if (text.size() > kMostText || text.find('\0') != std::string_view::npos) {
      out_ += fmt::format("({} bytes)", text.size());
    } else {
      out_ += fmt::format("'{}'", text);
    }
  }

  void print(const std::string& text) { print(std::string_view(text)); }

  template <std::size_t N>
  void print(const std::array<std::uint8_t, N>& /*bytes*/) {
    out_ += fmt::format("({} bytes)", N);
  }

  template <typename... Flag>
  void print(const std::tuple<Flag&...>& flags) {
    std::apply([this](const auto&... flag) { ((out_ += flag ? '1' : '0'), ...); }, flags);
  }

  template <typename T>
  void print(const std::vector<T>& values) {
    out_ += '[';
    for (std::size_t i = 0; i < values.size() && i < kMostEntries; ++i) {
      if (i > 0) out_ += ", ";
      print(values[i]);
    }
    out_ += values.size() > kMostEntries ? fmt::format(", ... {} in all]", values.size()) : "]";
  }

  template <typename T>
  void print(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      out_ += fmt::to_string(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      out_ += fmt::to_string(value);
    } else if constexpr (requires { wire::plain(value); }) {
      out_ += fmt::to_string(wire::plain(value));
    } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
      out_ += fmt::format("{} ns", value.count());
    } else {
      out_ += '(';
      FieldsOf<T>::visit(*this, value);
      out_ += " )";
    }
  }

  std::string& out_;
};

namespace detail {

/// The message that is all that is left in `in`, checked.
template <typename T>
void read_all(ByteReader& in, T& message) {
  wire::Fields{}.read(in, message);
  if (in.good() && in.left() > 0) in.refuse("has bytes too many");
  if constexpr (requires { T::check(message); }) {
    if (const std::string_view problem = in.good() ? T::check(message) : ""; !problem.empty())
      in.refuse(problem);
  }
}

template <typename Message>
struct MessageTable;

template <typename... M>
struct MessageTable<std::variant<M...>> {
  using Message = std::variant<M...>;

  static constexpr bool types_are_unique() {
    const std::array<std::uint32_t, sizeof...(M)> types{M::kRow.type...};
    for (std::size_t i = 0; i < types.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (types[i] == types[k]) return false;
      }
    }
    return true;
  }

  template <typename T>
  static bool read_as(std::uint32_t type, ByteReader& in, std::optional<Message>& to) {
    if (type != T::kRow.type) return false;
    T message;
    read_all(in, message);
    if (!in.good()) in.blame(T::kRow.name);
    to.emplace(std::in_place_type<T>, std::move(message));
    return true;
  }

  static std::optional<Message> read(std::uint32_t type, ByteReader& in) {
    static_assert(types_are_unique(), "two messages have one type number");
    std::optional<Message> message;
    if (!(read_as<M>(type, in, message) || ...)) {
      in.refuse(fmt::format("type {} is unknown", type));
    } else if (!in.good()) {
      message.reset();
    }
    return message;
  }
};

}  // namespace detail

template <typename... M>
std::uint32_t type_of(const std::variant<M...>& message) {
  return std::visit([](const auto& m) { return m.kRow.type; }, message);
}

/// Appends the fields of `message`; its type is the caller's to write.
template <typename... M>
void write_message(ByteWriter& out, const std::variant<M...>& message) {
  std::visit([&out](const auto& m) { wire::Fields{}.write(out, m); }, message);
}

/// The message of that type, which is all that is left in `in`. nullopt: it is refused, and
/// in.problem() says why: "signal: number: ends too early".
template <typename Message>
std::optional<Message> read_message(std::uint32_t type, ByteReader& in) {
  return detail::MessageTable<Message>::read(type, in);
}

/// The bytes of a message that travels without a type number, because its place says what it is.
template <typename T>
std::string encode_fields(const T& message) {
  ByteWriter out;
  wire::Fields{}.write(out, message);
  return out.take();
}

/// The message that encode_fields() wrote; `name` is for the error. Fails: protocol.
template <typename T>
Result<T> decode_fields(BytesView bytes, std::string_view name) {
  ByteReader in(bytes);
  T message;
  detail::read_all(in, message);
  if (in.good()) return message;
  return fail(Errc::protocol, "{} is invalid: {}", name, in.problem());
}

/// A message for people: "signal number=15".
template <typename... M>
std::string print_message(const std::variant<M...>& message) {
  return std::visit(
      [](const auto& m) {
        std::string out(m.kRow.name);
        FieldPrinter field(out);
        FieldsOf<std::decay_t<decltype(m)>>::visit(field, m);
        return out;
      },
      message);
}

/// Handlers for std::visit, one lambda per message: one that is missing does not compile.
template <typename... Handler>
struct Overloaded : Handler... {
  using Handler::operator()...;
};

template <typename... Handler>
Overloaded(Handler...) -> Overloaded<Handler...>;

}  // namespace horo
