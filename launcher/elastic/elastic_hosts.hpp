// SPDX-License-Identifier: Apache-2.0
// The hosts of an elastic job: which are offered, which of them may get workers, and in what order.
// A host that has been in use for longer stands before a younger one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "discovery/host.hpp"
#include "launcher/elastic/elastic_rules.hpp"

namespace horo::launcher {

enum class HostUse : std::uint8_t {
  usable,
  put_aside,  ///< A slot failed too often, or the agent was lost.
  leaving,    ///< It was told to go, by a signal or by the user.
};

enum class AgentPhase : std::uint8_t { none, running, closing };

struct ElasticHost {
  std::string name;
  std::string user{};  ///< The user to log in as; empty: as configured.
  int slots = 0;       ///< As offered last; 0: the host is not offered now.
  int most_slots = 0;  ///< The most it ever offered.
  HostUse use = HostUse::usable;
  std::string why{};                    ///< Why it is put aside or leaves.
  int signal = 0;                       ///< The signal by which it was told to go; 0: none.
  std::optional<TimePoint> back_at{};   ///< End of the cooldown; none: it does not come back.
  std::optional<TimePoint> leave_by{};  ///< Workers that are still there then are ended.
  int times_aside = 0;                  ///< Each further cooldown is longer.
  std::vector<int> failures{};          ///< By slot, since it was put aside last.
  AgentPhase agent = AgentPhase::none;

  /// The number of workers that may be there.
  int room() const { return use == HostUse::usable ? slots : 0; }
};

class ElasticHosts {
 public:
  explicit ElasticHosts(const ElasticRules& rules);

  /// Takes the hosts that are offered now. A host that had left by a signal and was not offered in
  /// between can be used again; a host that is put aside, or that the user does not want, cannot.
  /// Returns a line for people about each difference from the offer before: "host c is offered with
  /// 2 slots".
  std::vector<std::string> offer(const discovery::HostSet& offered);

  /// A worker of this slot failed. True: that was once too often, and the host must be put aside.
  bool count_failure(std::size_t host, int slot);
  void put_aside(std::size_t host, std::string why, TimePoint now);
  void leave(std::size_t host, int signal, std::string why, TimePoint by);
  void give_back(std::size_t host);
  /// Gives back the hosts whose cooldown has ended.
  std::vector<std::size_t> give_back_due(TimePoint now);

  const std::vector<ElasticHost>& all() const { return hosts_; }

  const ElasticHost& at(std::size_t host) const { return hosts_[host]; }

  ElasticHost& at(std::size_t host) { return hosts_[host]; }

  bool has(std::size_t host) const { return host < hosts_.size(); }

  std::optional<std::size_t> find(std::string_view name) const;

  /// Usable hosts, the one that has been in use for longest first.
  const std::vector<std::size_t>& by_age() const { return by_age_; }

  int room() const;

  bool offered_yet() const { return offered_yet_; }

  void delay(Duration by);  ///< Moves all deadlines.
  std::optional<TimePoint> next_deadline() const;

 private:
  void take(const discovery::Host& host);
  void update_ages();

  std::optional<CooldownRange> cooldown_;
  int slot_restarts_ = 0;
  std::uint64_t random_ = 1;
  std::vector<ElasticHost> hosts_;  ///< In the order in which they were first offered.
  std::unordered_map<std::string, std::size_t> indices_;  ///< By name.
  std::vector<std::size_t> offered_;                      ///< The last offer, in its order.
  std::vector<std::size_t> by_age_;
  bool offered_yet_ = false;
};

}  // namespace horo::launcher
