// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/reachable_address.hpp"

#include <sstream>

#include "base/net/own_addresses.hpp"
#include "runtime/backends/probe_listener.hpp"

namespace horo::runtime {

namespace {

/// A rank's probe listener and addresses, as the text "port secret address address ...".
struct ProbeContact {
  std::uint16_t port = 0;
  std::string secret;
  std::vector<std::string> addresses;
};

std::string encode(const ProbeContact& contact) {
  auto text = fmt::format("{} {}", contact.port, contact.secret);
  for (const auto& address : contact.addresses) text += " " + address;
  return text;
}

Result<ProbeContact> decode(const std::string& text) {
  constexpr std::size_t kMost = 64;
  ProbeContact contact;
  std::istringstream in(text);
  in >> contact.port >> contact.secret;
  for (std::string address; contact.addresses.size() < kMost && in >> address;)
    contact.addresses.push_back(address);
  if (contact.port == 0 || contact.secret.size() != ProbeListener::kSecretBytes) {
    return fail(Errc::protocol, "'{}' does not describe how to reach a rank", text.substr(0, 80));
  }
  return contact;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

std::string key_of(const Communicator& c, int position, const char* what) {
  return fmt::format("{}/route/{}/{}", c.name, position, what);
}

/// Tries the addresses of one rank and sends it the first that answers, or an empty text.
Status probe_for(const Communicator& c, int position, Deadline deadline) {
  HORO_TRY(const auto text, c.meeting->get(key_of(c, position, "addresses"), deadline));
  HORO_TRY(const auto contact, decode(text));
  const auto found = first_answering(contact.addresses, contact.port, contact.secret);
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
  HORO_TRY(const auto probe, ProbeListener::open());
  const ProbeContact mine{
      .port = probe->port(), .secret = probe->secret(), .addresses = own_addresses()};
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
