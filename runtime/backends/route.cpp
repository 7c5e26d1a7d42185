// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/route.hpp"

#include <sstream>

#include "runtime/backends/doorbell.hpp"

namespace horo::runtime {

namespace {

/// What a rank tells about itself: "port secret address address ...".
struct Record {
  std::uint16_t port = 0;
  std::string secret;
  std::vector<std::string> addresses;
};

std::string encode(const Record& record) {
  auto text = fmt::format("{} {}", record.port, record.secret);
  for (const auto& address : record.addresses) text += " " + address;
  return text;
}

Result<Record> decode(const std::string& text) {
  constexpr std::size_t kMost = 64;
  Record record;
  std::istringstream in(text);
  in >> record.port >> record.secret;
  for (std::string address; record.addresses.size() < kMost && in >> address;)
    record.addresses.push_back(address);
  if (record.port == 0 || record.secret.size() != Doorbell::kSecretBytes) {
    return fail(Errc::protocol, "'{}' does not tell how to reach a rank", text.substr(0, 80));
  }
  return record;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

std::string key_of(const Communicator& c, int position, const char* what) {
  return fmt::format("{}/route/{}/{}", c.name, position, what);
}

/// Tries the addresses of one rank and tells it the first that answers, or nothing.
Status probe_for(const Communicator& c, int position, Deadline deadline) {
  HORO_TRY(const auto text, c.meeting->get(key_of(c, position, "addresses"), deadline));
  HORO_TRY(const auto record, decode(text));
  const auto found = first_answering(record.addresses, record.port, record.secret);
  return c.meeting->set(key_of(c, position, "reached"), found, deadline);
}

}  // namespace

int prober_of(const Communicator& communicator, int position) {
  const int size = communicator.size();
  for (int distance = 1; distance < size; ++distance) {
    const int other = (position - distance + size) % size;
    if (communicator.host_of(other) != communicator.host_of(position)) return other;
  }
  return -1;
}

Result<std::string> reachable_address(const Communicator& c) {
  const auto deadline = Deadline::in(SteadyClock::instance(), c.start_timeout);
  const int prober = prober_of(c, c.position);
  if (prober < 0) return std::string("127.0.0.1");
  HORO_TRY(const auto doorbell, Doorbell::open());
  const Record mine{
      .port = doorbell->port(), .secret = doorbell->secret(), .addresses = own_addresses()};
  HORO_TRY_STATUS(c.meeting->set(key_of(c, c.position, "addresses"), encode(mine), deadline));
  for (int other = 0; other < c.size(); ++other) {
    if (prober_of(c, other) == c.position) HORO_TRY_STATUS(probe_for(c, other, deadline));
  }
  HORO_TRY(auto reached, c.meeting->get(key_of(c, c.position, "reached"), deadline));
  if (!reached.empty()) return reached;
  return fail(Errc::unavailable,
              "rank {} reaches none of this host's addresses ({}); see whether a firewall is "
              "between the hosts, or name the interface that connects them",
              c.members[static_cast<std::size_t>(prober)], joined(mine.addresses));
}

}  // namespace horo::runtime
