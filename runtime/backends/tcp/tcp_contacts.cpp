// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_contacts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "runtime/backends/reachable_address.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kSizeTag = ~std::uint64_t{0};
constexpr std::uint64_t kTableTag = kSizeTag - 1;
constexpr const char* kOwn = "tcp";
constexpr const char* kBelow = "tcp-below";

std::vector<int> by_rank(const std::vector<int>& members) {
  if (std::is_sorted(members.begin(), members.end())) return {};
  std::vector<int> positions(members.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::sort(positions.begin(), positions.end(), [&members](int a, int b) {
    return members[static_cast<std::size_t>(a)] < members[static_cast<std::size_t>(b)];
  });
  return positions;
}

int node_of(const std::vector<int>& positions, int position) {
  if (positions.empty()) return position;
  return static_cast<int>(std::find(positions.begin(), positions.end(), position) -
                          positions.begin());
}

/// The same hosts with another port.
Result<TcpContact> beside(TcpContact other, std::string_view digits) {
  std::uint16_t port = 0;
  const auto* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end || port == 0)
    return fail(Errc::protocol, "'{}' is no port", digits);
  for (auto& address : other) address.port = port;
  return other;
}

bool share_hosts(const TcpContact& a, const TcpContact& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& other) { return one.host == other.host; });
}

Result<TcpContact> decode_contact(std::string_view line) {
  auto space = line.find(' ');
  HORO_TRY(auto first, kv::parse_address(line.substr(0, space)));
  const auto port = first.port;
  TcpContact contact{std::move(first)};
  while (space != std::string_view::npos) {
    line.remove_prefix(space + 1);
    space = line.find(' ');
    const auto host = line.substr(0, space);
    if (host.empty()) return fail(Errc::protocol, "an interface without an address");
    contact.push_back({std::string(host), port});
  }
  return contact;
}

constexpr Duration kEach = std::chrono::milliseconds(500);

/// A later deadline with so many levels of the tree below: the rank that waits for a missing one
/// itself gives up first, and names it.
Deadline after(Deadline deadline, int levels) {
  const auto& clock = SteadyClock::instance();
  const auto left = deadline.left(clock.now());
  return left == Duration::max() ? deadline : Deadline::in(clock, left + kEach * levels);
}

Result<std::vector<TcpRail>> own_rails(const Communicator& communicator) {
  if (communicator.address.empty() && !communicator.interface.empty())
    return rails_of(communicator.interface);
  TcpRail only{.address = communicator.address};
  if (only.address.empty()) {
    HORO_TRY(only.address, reachable_address(communicator));
  }
  return std::vector{std::move(only)};
}

}  // namespace

Result<std::shared_ptr<TcpEndpoint>> endpoint_of(const Communicator& communicator) {
  if (communicator.shared != nullptr) {
    if (auto known = std::dynamic_pointer_cast<TcpEndpoint>(*communicator.shared)) return known;
  }
  HORO_TRY(auto rails, own_rails(communicator));
  const auto address = rails.front().address;
  const int me = communicator.members[static_cast<std::size_t>(communicator.position)];
  auto endpoint =
      TcpEndpoint::open(std::move(rails), me, communicator.secret, communicator.encryption);
  if (!endpoint) {
    return fail(endpoint.error().code,
                "interface '{}' address '{}' cannot be used: {}; name an interface or address of "
                "this host",
                communicator.interface, address, endpoint.error().message);
  }
  if (communicator.shared != nullptr) *communicator.shared = *endpoint;
  return endpoint;
}

ContactExchange::ContactExchange(const std::vector<int>& members, std::string name, int position,
                                 RendezvousStore& store)
    : members_(members),
      name_(std::move(name)),
      store_(store),
      positions_(by_rank(members)),
      place_(place_of(node_of(positions_, position), static_cast<int>(members.size()), kRadix)),
      first_(place_.node),
      addresses_(static_cast<std::size_t>(place_.end - place_.node)) {}

int ContactExchange::position_of(int node) const {
  return positions_.empty() ? node : positions_[static_cast<std::size_t>(node)];
}

std::string ContactExchange::key(std::string_view what, int node) const {
  return fmt::format("{}/{}/{}", name_, what, rank_of(node));
}

std::map<int, TcpContact> ContactExchange::contacts() const {
  std::map<int, TcpContact> known;
  for (std::size_t i = 0; i < addresses_.size(); ++i)
    known[rank_of(first_ + static_cast<int>(i))] = addresses_[i];
  return known;
}

Status ContactExchange::gather(TcpContact own, Deadline deadline) {
  rails_ = own.size();
  addresses_.front() = std::move(own);
  if (place_.parent >= 0) {
    HORO_TRY_STATUS(store_.set(key(kOwn, place_.node),
                               encode_contacts(std::span(addresses_).first(1)), deadline));
  }
  for (const auto& child : place_.children) {
    HORO_TRY(const auto text,
             store_.get(key(kOwn, child.first), deadline)
                 .context(fmt::format("waiting for the address of rank {}", rank_of(child.first))));
    HORO_TRY_STATUS(put(child.first, child.first + 1, text));
  }
  for (const auto& child : place_.children) {
    if (child.end == child.first + 1) continue;
    const auto later = after(deadline, depth_of(child.end - child.first, kRadix));
    HORO_TRY(const auto text,
             store_.get(key(kBelow, child.first), later)
                 .context(fmt::format("waiting for the addresses that rank {} collects",
                                      rank_of(child.first))));
    HORO_TRY_STATUS(put(child.first + 1, child.end, text));
  }
  if (place_.parent < 0 || place_.children.empty()) return {};
  return store_.set(key(kBelow, place_.node), encode_contacts(std::span(addresses_).subspan(1)),
                    deadline);
}

/// Takes the addresses of the nodes [first, end).
Status ContactExchange::put(int first, int end, std::string_view table) {
  HORO_TRY(auto some, decode_contacts(table));
  if (some.size() != static_cast<std::size_t>(end - first)) {
    return fail(Errc::protocol, "a table of {} addresses, where {} ranks have one each",
                some.size(), end - first);
  }
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (some[i].size() != rails_) {
      return fail(
          Errc::invalid_argument,
          "rank {} uses {} network interfaces, and rank {} uses {}; give HOROVOD_GLOO_IFACE "
          "(--gloo-iface) the same number of interfaces for all ranks",
          rank_of(first + static_cast<int>(i)), some[i].size(), rank_of(place_.node), rails_);
    }
  }
  std::move(some.begin(), some.end(), addresses_.begin() + (first - first_));
  return {};
}

Result<std::string> ContactExchange::receive_table(Transport& transport) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  const int parent = position_of(place_.parent);
  std::array<std::uint8_t, 8> size{};
  const auto take = [&](std::uint64_t tag, void* at, std::uint64_t bytes) -> Status {
    HORO_TRY(const auto message,
             transport.receive(
                 {.peer = parent, .tag = tag, .at = static_cast<std::byte*>(at), .bytes = bytes}));
    return message->wait();
  };
  HORO_TRY_STATUS(take(kSizeTag, size.data(), size.size()));
  std::uint64_t bytes = 0;
  for (std::size_t i = size.size(); i-- > 0;) bytes = bytes << 8U | size[i];
  if (bytes > kMost) return fail(Errc::protocol, "a table of addresses with {} bytes", bytes);
  std::string table(bytes, '\0');
  HORO_TRY_STATUS(take(kTableTag, table.data(), bytes));
  return table;
}

Duration ContactExchange::spread_limit(Deadline deadline) const {
  const auto left = deadline.left(SteadyClock::instance().now());
  if (left == Duration::max()) return Duration::zero();
  return left + kEach * (1 + depth_of(static_cast<int>(members_.size()), kRadix));
}

Status ContactExchange::spread(Transport& transport) {
  std::string table;
  if (place_.parent < 0) {
    table = encode_contacts(addresses_);
  } else {
    HORO_TRY(table, receive_table(transport));
    first_ = 0;
    addresses_.resize(members_.size());
    HORO_TRY_STATUS(put(0, static_cast<int>(members_.size()), table));
  }
  std::array<std::uint8_t, 8> size{};
  for (std::size_t i = 0; i < size.size(); ++i)
    size[i] = static_cast<std::uint8_t>(table.size() >> (8 * i));
  std::vector<std::unique_ptr<PendingMessage>> messages;
  const auto give = [&](int child, std::uint64_t tag, void* at, std::uint64_t bytes) -> Status {
    HORO_TRY(auto message,
             transport.send(
                 {.peer = child, .tag = tag, .at = static_cast<std::byte*>(at), .bytes = bytes}));
    messages.push_back(std::move(message));
    return {};
  };
  for (const auto& child : place_.children) {
    const int position = position_of(child.first);
    HORO_TRY_STATUS(give(position, kSizeTag, size.data(), size.size()));
    HORO_TRY_STATUS(give(position, kTableTag, table.data(), table.size()));
  }
  for (const auto& message : messages) HORO_TRY_STATUS(message->wait());
  return {};
}

std::string encode_contacts(std::span<const TcpContact> contacts) {
  std::string text;
  const TcpContact* before = nullptr;
  for (const auto& contact : contacts) {
    const auto& first = contact.front();
    if (before != nullptr && share_hosts(*before, contact)) {
      text += fmt::format(":{}\n", first.port);
    } else {
      text += kv::to_string(first);
      for (std::size_t r = 1; r < contact.size(); ++r) text += " " + contact[r].host;
      text += "\n";
    }
    before = &contact;
  }
  return text;
}

Result<std::vector<TcpContact>> decode_contacts(std::string_view text) {
  std::vector<TcpContact> contacts;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    auto contact = !line.starts_with(':') || contacts.empty()
                       ? decode_contact(line)
                       : beside(contacts.back(), line.substr(1));
    if (!contact)
      return fail(Errc::protocol, "'{}' does not say where a rank listens", line.substr(0, 80));
    contacts.push_back(std::move(*contact));
  }
  return contacts;
}

}  // namespace horo::runtime
