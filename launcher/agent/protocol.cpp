// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/protocol.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/version.hpp"
#include "launcher/agent/fields.hpp"

namespace horo::launcher::protocol {

namespace {

/// Type numbers on the wire, in the order of Message's alternatives.
constexpr std::array<std::uint8_t, std::variant_size_v<Message>> kTypes{
    1,  2,  3,  4,  5,  6,  7,  8,  64, 65, 66, 67, 68, 69, 70, 71, 10,
    11, 72, 12, 13, 14, 73, 74, 75, 76, 77, 15, 16, 78, 79, 80, 17};

constexpr int kMostRanks = 0xffffff;
constexpr int kMostPort = 65535;
constexpr int kMostSignal = 64;

template <typename T>
using Word = std::make_unsigned_t<T>;

class Writer {
 public:
  explicit Writer(std::string& to) : to_(to) {}

  template <typename T>
  void number(T value) {
    auto word = static_cast<Word<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      to_.push_back(static_cast<char>(word & 0xffU));
      word = static_cast<Word<T>>(static_cast<std::uint64_t>(word) >> 8U);
    }
  }

  template <typename Tag, typename T>
  void strong(Strong<Tag, T> value) {
    number(value.value());
  }

  template <typename E>
  void choice(E value, E /*least*/, E /*most*/) {
    number(static_cast<std::uint8_t>(value));
  }

  void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }

  void duration(Duration value) { number<std::int64_t>(value.count()); }

  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }

  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    to_.append(text);
  }

  void rest(std::string_view bytes) { to_.append(bytes); }

  void raw(const std::array<std::uint8_t, 32>& bytes) {
    for (const auto byte : bytes) number(byte);
  }

  template <typename T>
  void list(std::vector<T>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (auto& value : values) fields(*this, value);
  }

  void both(const Environment* first, Environment& second) {
    number(static_cast<std::uint32_t>((first == nullptr ? 0 : first->size()) + second.size()));
    const auto put = [this](const auto& variable) {
      text(variable.first);
      text(variable.second);
    };
    if (first != nullptr) std::for_each(first->begin(), first->end(), put);
    std::for_each(second.begin(), second.end(), put);
  }

  void shared_addresses(std::vector<WorkerIdentity>& ranks) {
    auto addresses =
        ranks.empty() ? std::vector<std::string>() : ranks.front().worker_addresses.list();
    list(addresses);
  }

 private:
  std::string& to_;
};

/// Reads until the first thing that makes no sense; what follows is zeros then.
class Reader {
 public:
  explicit Reader(std::string_view from) : from_(from) {}

  template <typename T>
  void number(T& value) {
    std::uint64_t word = 0;
    const auto bytes = take(sizeof(T));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8U * i);
    }
    value = static_cast<T>(static_cast<Word<T>>(word));
  }

  template <typename Tag, typename T>
  void strong(Strong<Tag, T>& value) {
    T plain{};
    number(plain);
    value = Strong<Tag, T>{plain};
  }

  template <typename E>
  void choice(E& value, E least, E most) {
    std::uint8_t plain = 0;
    number(plain);
    if (plain < static_cast<std::uint8_t>(least) || plain > static_cast<std::uint8_t>(most)) {
      return spoil(fmt::format("choice {} outside {} to {}", plain, static_cast<int>(least),
                               static_cast<int>(most)));
    }
    value = static_cast<E>(plain);
  }

  void flag(bool& value) {
    std::uint8_t plain = 0;
    number(plain);
    if (plain > 1) return spoil(fmt::format("flag {}", plain));
    value = plain == 1;
  }

  void duration(Duration& value) {
    std::int64_t count = 0;
    number(count);
    if (count < 0) return spoil(fmt::format("negative duration {}", count));
    value = Duration(count);
  }

  /// A figure: neither negative nor endless.
  void real(double& value) {
    std::uint64_t bits = 0;
    number(bits);
    value = std::bit_cast<double>(bits);
    if (std::signbit(value) || !std::isfinite(value)) return spoil("no figure");
  }

  void text(std::string& text) {
    std::uint32_t size = 0;
    number(size);
    text = take(size);
    if (text.find('\0') != std::string::npos) spoil("text with a NUL byte");
  }

  void rest(std::string_view& bytes) { bytes = take(from_.size()); }

  void raw(std::array<std::uint8_t, 32>& bytes) {
    for (auto& byte : bytes) number(byte);
  }

  template <typename T>
  void list(std::vector<T>& values) {
    std::uint32_t count = 0;
    number(count);
    // Every entry takes four bytes at least, so a count cannot claim more memory than it sent.
    if (count > from_.size() / 4)
      return spoil(fmt::format("list of {} entries in {} bytes", count, from_.size()));
    values.clear();
    values.reserve(std::min<std::size_t>(count, 4096));
    for (std::uint32_t i = 0; i < count && problem_.empty(); ++i)
      fields(*this, values.emplace_back());
  }

  void both(const Environment* /*first*/, Environment& second) { list(second); }

  void shared_addresses(std::vector<WorkerIdentity>& ranks) {
    std::vector<std::string> addresses;
    list(addresses);
    const WorkerAddresses shared(std::move(addresses));
    for (auto& rank : ranks) rank.worker_addresses = shared;
  }

  const std::string& finish() {
    if (problem_.empty() && !from_.empty()) spoil(fmt::format("{} bytes too many", from_.size()));
    return problem_;
  }

  void spoil(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    from_ = {};
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > from_.size()) {
      spoil(fmt::format("{} bytes wanted, {} left", size, from_.size()));
      return {};
    }
    const auto taken = from_.substr(0, size);
    from_.remove_prefix(size);
    return taken;
  }

  std::string_view from_;
  std::string problem_;
};

bool plausible(const RankExit& exit) {
  return exit.rank.value() >= 0 && (exit.attached || !exit.undetached) &&
         exit.heard.value() >= -1 && exit.heard != exit.rank;
}

bool plausible(const timeline::LiveRow& row) {
  return row.rank >= 0 && row.rank < kMostRanks && row.for_ns >= 0 && row.lag_ns >= 0 &&
         row.tensor.size() <= kMostTensorText && row.missing.size() <= kMostMissing;
}

/// What the fields alone cannot say.
std::string_view contradiction(const Message& message) {
  if (const auto* start = std::get_if<Start>(&message)) {
    if (start->spec.command.empty()) return "no command";
    if (start->spec.ranks.empty() || start->spec.ranks.size() > kMaxLocalRanks)
      return "number of ranks";
    const int first = start->spec.ranks.front().local_rank.value();
    if (first < 0 || first >= kMaxLocalRanks ||
        start->spec.ranks.back().local_size > kMaxLocalRanks)
      return "ranks out of order";
    for (std::size_t i = 0; i < start->spec.ranks.size(); ++i) {
      const auto& identity = start->spec.ranks[i];
      if (identity.rank.value() < 0 || identity.rank.value() >= identity.size)
        return "rank outside the job";
      if (identity.local_rank.value() != first + static_cast<int>(i)) return "ranks out of order";
    }
  }
  const auto no_signal = [](int number) { return number < 1 || number > kMostSignal; };
  if (const auto* signal = std::get_if<Signal>(&message);
      signal != nullptr && no_signal(signal->number)) {
    return "signal number";
  }
  if (const auto* asked = std::get_if<EndAsked>(&message);
      asked != nullptr && no_signal(asked->number)) {
    return "signal number";
  }
  // A board keeps the rank in 24 bits.
  if (const auto* stop = std::get_if<Stop>(&message);
      stop != nullptr &&
      (stop->cause.rank.value() < -1 || stop->cause.rank.value() >= kMostRanks)) {
    return "rank to blame";
  }
  if (const auto* prepare = std::get_if<Prepare>(&message);
      prepare != nullptr && (prepare->ports < 0 || prepare->ports > kMaxLocalRanks + 1)) {
    return "number of ports";
  }
  if (const auto* prepared = std::get_if<Prepared>(&message);
      prepared != nullptr && !std::all_of(prepared->ports.begin(), prepared->ports.end(),
                                          [](int port) { return port > 0 && port <= kMostPort; })) {
    return "port";
  }
  if (const auto* reach = std::get_if<Reach>(&message);
      reach != nullptr && (reach->port < 0 || reach->port > kMostPort)) {
    return "port";
  }
  if (const auto* carry = std::get_if<Carry>(&message); carry != nullptr && carry->frame.empty()) {
    return "an empty frame";
  }
  if (const auto* output = std::get_if<Output>(&message);
      output != nullptr && output->bytes.size() > kMaxChunk) {
    return "size of output";
  }
  if (const auto* feed = std::get_if<FeedStdin>(&message);
      feed != nullptr && feed->bytes.size() > kMaxChunk) {
    return "size of input";
  }
  if (const auto* viewed = std::get_if<Viewed>(&message);
      viewed != nullptr &&
      (viewed->rows.size() > kMaxLocalRanks ||
       !std::all_of(viewed->rows.begin(), viewed->rows.end(),
                    [](const timeline::LiveRow& row) { return plausible(row); }))) {
    return "a rank's row";
  }
  if (const auto* piece = std::get_if<Piece>(&message);
      piece != nullptr && piece->bytes.size() > kPieceBytes) {
    return "size of a piece";
  }
  if (const auto* exited = std::get_if<Exited>(&message);
      exited != nullptr && !plausible(exited->exit)) {
    return "rank or membership";
  }
  return {};
}

template <std::size_t I = 0>
Result<Message> decode_as(std::size_t index, Reader& reader) {
  if constexpr (I == std::variant_size_v<Message>) {
    return fail(Errc::protocol, "message {} of an agent", index);
  } else {
    if (index != I) return decode_as<I + 1>(index, reader);
    std::variant_alternative_t<I, Message> message;
    fields(reader, message);
    return Message(std::in_place_index<I>, std::move(message));
  }
}

}  // namespace

Hello Hello::ours() {
  Hello hello;
  hello.version_code = horo::version_code();
  hello.version = horo::version();
  return hello;
}

namespace {

void put_size(std::size_t size, std::string& to, std::size_t at) {
  for (std::size_t i = 0; i < 4; ++i) to[at + i] = static_cast<char>(size >> (8U * i) & 0xffU);
}

}  // namespace

Status encode(const Message& message, std::string& to) {
  const auto begin = to.size();
  to.append(4, '\0');
  to.push_back(static_cast<char>(kTypes[message.index()]));
  Writer writer(to);
  // The archives share one list of fields, which a reader changes and a writer does not.
  std::visit([&](const auto& m) { fields(writer, const_cast<std::decay_t<decltype(m)>&>(m)); },
             message);
  const auto size = to.size() - begin - 4;
  if (size > kMaxFrame) {
    to.resize(begin);
    return fail(Errc::resource_exhausted,
                "a message of {} bytes to or from an agent; at most {} fit", size, kMaxFrame);
  }
  put_size(size, to, begin);
  return {};
}

void append_frame(std::string_view frame, std::string& to) {
  const auto begin = to.size();
  to.append(4, '\0');
  to.append(frame);
  put_size(frame.size(), to, begin);
}

namespace {

template <typename M, std::size_t I = 0>
constexpr std::uint8_t type_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Message>, M>) {
    return kTypes[I];
  } else {
    return type_of<M, I + 1>();
  }
}

}  // namespace

template <typename M>
bool is(std::string_view frame) {
  return !frame.empty() && static_cast<std::uint8_t>(frame.front()) == type_of<M>();
}

template bool is<Hello>(std::string_view frame);
template bool is<Heartbeat>(std::string_view frame);
template bool is<Prepare>(std::string_view frame);

Result<Message> decode(std::string_view frame) {
  if (frame.empty()) return fail(Errc::protocol, "an empty frame");
  const auto type = static_cast<std::uint8_t>(frame.front());
  std::size_t index = 0;
  while (index < kTypes.size() && kTypes[index] != type) ++index;
  if (index == kTypes.size()) return fail(Errc::protocol, "a frame of unknown type {}", type);
  Reader reader(frame.substr(1));
  auto message = decode_as(index, reader);
  if (!message) return message;
  if (const auto& problem = reader.finish(); !problem.empty()) {
    return fail(Errc::protocol, "a frame of type {} makes no sense: {}", type, problem);
  }
  if (const auto problem = contradiction(*message); !problem.empty()) {
    return fail(Errc::protocol, "a frame of type {} makes no sense: {}", type, problem);
  }
  return message;
}

bool Noise::pass(std::string_view bytes) {
  constexpr std::string_view kHello("\1HORA", 5);  // Its type and magic, behind four bytes of size.
  constexpr std::size_t kSize = 4;
  seen_.append(bytes);
  const auto found = seen_.find(kHello, kSize);
  if (found == std::string::npos) {
    const auto kept = kSize + kHello.size() - 1;
    if (seen_.size() > kept) seen_.erase(0, seen_.size() - kept);
    return false;
  }
  seen_.erase(0, found - kSize);
  return true;
}

void FrameReader::feed(std::string_view bytes) {
  buffer_.erase(0, start_);
  start_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<Message>> FrameReader::next() {
  const auto before = start_;
  HORO_TRY(const auto frame, next_frame());
  if (!frame) return std::optional<Message>{};
  auto message = decode(*frame);
  if (!message) start_ = before;  // Nothing behind it counts.
  HORO_TRY(auto whole, std::move(message));
  return std::optional<Message>(std::move(whole));
}

Result<std::optional<std::string_view>> FrameReader::next_frame() {
  const std::string_view left = std::string_view(buffer_).substr(start_);
  if (left.size() < kHeaderBytes) return std::optional<std::string_view>{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(left[i])) << (8U * i);
  if (size == 0 || size > kMaxFrame)
    return fail(Errc::protocol, "a frame of {} bytes; allowed are 1 to {}", size, kMaxFrame);
  if (left.size() < 4 + size) return std::optional<std::string_view>{};
  start_ += 4 + size;
  return std::optional(left.substr(4, size));
}

Status check_hello(const Hello& theirs, std::string_view who) {
  if (theirs.magic != kMagic) return fail(Errc::protocol, "{} does not speak horo's protocol", who);
  const auto ours = Hello::ours();
  if (theirs.protocol != ours.protocol || theirs.version_code != ours.version_code) {
    return fail(
        Errc::version_mismatch,
        "{} is horo {} with protocol {}, this is horo {} with protocol {}; install the same "
        "version on both",
        who, theirs.version, theirs.protocol, ours.version, ours.protocol);
  }
  return {};
}

}  // namespace horo::launcher::protocol
