// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/resize_plan.hpp"

#include <algorithm>
#include <string_view>

#include "launcher/elastic/membership_losses.hpp"
#include "launcher/elastic/membership_words.hpp"

namespace horo::launcher {

namespace {

ResizePlan refusal(std::string why) {
  return {.answer = {.accepted = false, .text = std::move(why)}};
}

ResizePlan acceptance(std::string text, std::optional<MembershipEvent> event) {
  return {.answer = {.accepted = true, .text = std::move(text)}, .event = std::move(event)};
}

std::string_view in_short(HostUse use) {
  switch (use) {
    case HostUse::usable:
      return "";
    case HostUse::put_aside:
      return " (put aside)";
    case HostUse::leaving:
      return " (leaving)";
  }
  return "";
}

/// "h1, h2 (leaving), h3".
std::string list_hosts(const MembershipState& state) {
  constexpr std::size_t kMostHostsNamed = 8;
  std::string text;
  std::size_t known = 0;
  for (const auto& host : state.hosts.all()) {
    if (host.slots == 0 && host.agent == AgentPhase::none) continue;
    if (++known > kMostHostsNamed) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", host.name, in_short(host.use));
  }
  if (known > kMostHostsNamed) text += fmt::format(" and {} more", known - kMostHostsNamed);
  return text.empty() ? "it has no hosts now" : "its hosts are " + text;
}

/// The workers of one host, and of the job.
struct Population {
  int living_there = 0;
  int there = 0;        ///< Those that count, also if they are asked to leave.
  int ranks_there = 0;  ///< Members of the current generation.
  int ranks = 0;
};

Population population_of(const MembershipState& state, std::size_t host) {
  Population found;
  for (const auto& worker : state.workers.all()) {
    const bool here = worker.host == host;
    found.living_there += here && worker.living() ? 1 : 0;
    found.there += here && worker.counts() ? 1 : 0;
    found.ranks += worker.rank ? 1 : 0;
    found.ranks_there += here && worker.rank ? 1 : 0;
  }
  return found;
}

bool is_over(const MembershipState& state) {
  return state.phase == MembershipPhase::ending || state.phase == MembershipPhase::stopping ||
         state.phase == MembershipPhase::finished;
}

/// The places for workers that the job may still start.
int vacancies(const MembershipState& state, int staying) {
  return std::max(0, state.rules.max_np + state.rules.spares - staying);
}

// -- Fewer slots --------------------------------------------------------------------------------

std::string already_leaving(const ElasticHost& host, int living) {
  return fmt::format("{} already; {}", host.why,
                     living == 0 ? std::string("none of its ranks is left")
                                 : fmt::format("{} of it {} still there", count(living, "process"),
                                               living == 1 ? "is" : "are"));
}

std::string shrink_text(const MembershipState& state, const ElasticHost& host, int keep,
                        const Population& now) {
  const bool all = keep == 0;
  auto text =
      all ? fmt::format("host {} leaves the job", host.name)
          : fmt::format("host {} keeps {} of {}", host.name, keep, count(host.slots, "slot"));
  const int leavers = std::max(0, now.there - keep);
  const int going = std::max(0, leavers - (now.there - now.ranks_there));
  if (going == 0) return text + "; no rank has to go";
  text += fmt::format(": {} there end{} the step and go{}; {} of the job {} on",
                      count(going, "rank"), going == 1 ? "s" : "", going == 1 ? "es" : "",
                      count(now.ranks - going, "rank"), now.ranks - going == 1 ? "goes" : "go");
  const int staying = state.workers.staying() - leavers;
  const int room = state.hosts.room() - host.room() + std::min(keep, host.room());
  const int fresh = std::min(vacancies(state, staying), std::max(0, room - staying));
  if (fresh > 0) text += fmt::format("; {} can start on other hosts", count(fresh, "new rank"));
  return text;
}

ResizePlan plan_shrink(const MembershipState& state, const Resize& wish, std::size_t index) {
  const auto& host = state.hosts.at(index);
  const auto now = population_of(state, index);
  const int keep = wish.slots == Resize::kAll ? 0 : wish.slots;
  if (host.use == HostUse::leaving) return refusal(already_leaving(host, now.living_there));
  if (host.slots == 0 && now.living_there == 0) {
    return refusal(fmt::format("host {} is not in use: its source does not offer it now; {}",
                               host.name, list_hosts(state)));
  }
  if (keep > 0 && keep >= host.slots) {
    return refusal(fmt::format("host {} has {} only, so it cannot be shrunk to {}", host.name,
                               count(host.slots, "slot"), keep));
  }
  const int room = state.hosts.room() - host.room() + std::min(keep, host.room());
  if (room < state.rules.min_np && host.room() > keep) {
    return refusal(fmt::format(
        "only {} would be left, {} fewer than --min-np {} asks for; add slots elsewhere first: "
        "horo grow JOB HOST:SLOTS",
        count(room, "slot"), state.rules.min_np - room, state.rules.min_np));
  }
  if (now.ranks_there > keep && no_more_resets(state)) {
    return refusal(
        fmt::format("--reset-limit {} allows no further change of the ranks, so the "
                    "job would fail",
                    *state.rules.reset_limit));
  }
  auto text = shrink_text(state, host, keep, now);
  if (keep > 0) return acceptance(std::move(text), std::nullopt);
  return acceptance(std::move(text),
                    HostLeaving{.host = index, .signal = 0, .within = state.rules.elastic_timeout});
}

// -- More slots ---------------------------------------------------------------------------------

/// The slots that the host has if the wish is granted; 0: nobody knows.
int slots_after(const HostWishes& wishes, const Resize& wish) {
  if (wish.slots != Resize::kAll) return wish.slots;
  if (const int offered = wishes.offered_slots(wish.host); offered > 0) return offered;
  const auto hosts = wishes.hosts();
  const auto* host = hosts.find(wish.host);
  return host == nullptr ? 0 : host->slots;
}

std::string grow_text(const MembershipState& state, const std::string& host, int slots,
                      const Population& now) {
  auto text = fmt::format("host {} is used with {}", host, count(slots, "slot"));
  const int wanted = std::max(0, slots - now.there);
  const int fresh = std::min(wanted, vacancies(state, state.workers.staying()));
  if (fresh > 0)
    return text + fmt::format(": {} there and join{} at the end of a step when ready",
                              fresh == 1 ? "a rank starts" : fmt::format("{} ranks start", fresh),
                              fresh == 1 ? "s" : "");
  if (wanted == 0) return text + "; its ranks stay";
  return text + fmt::format(
                    "; the job has as many ranks as --max-np {} allows, so ranks start "
                    "there when others leave",
                    state.rules.max_np);
}

/// Why a host cannot be given to the job again now; empty: it can.
std::string cannot_return(const ElasticHost& host, const Population& now) {
  if (host.use != HostUse::leaving || host.signal == 0) return {};
  if (host.agent == AgentPhase::none && now.living_there == 0) return {};
  return fmt::format("{}, and something of the job is still there; try again when it has left",
                     host.why);
}

ResizePlan plan_grow(const ResizeView& view, const Resize& wish, std::optional<std::size_t> index) {
  const auto& state = view.state;
  const int slots = slots_after(view.wishes, wish);
  if (wish.slots == 0)
    return refusal("a host with 0 slots gets no rank; horo shrink takes a host away");
  if (!index && !view.others_may_come) {
    return refusal(
        fmt::format("the job runs on this machine only, so it cannot use host {}; start "
                    "it with several hosts, or with a discovery script",
                    wish.host));
  }
  if (slots == 0) {
    return refusal(
        fmt::format("the source of the hosts does not offer {} now; say how many slots "
                    "it has: horo grow JOB {}:SLOTS; {}",
                    wish.host, wish.host, list_hosts(state)));
  }
  if (no_more_resets(state)) {
    return refusal(fmt::format("--reset-limit {} allows no further change of the ranks",
                               *state.rules.reset_limit));
  }
  if (!index) return acceptance(grow_text(state, wish.host, slots, {}), std::nullopt);
  const auto& host = state.hosts.at(*index);
  const auto now = population_of(state, *index);
  if (auto why = cannot_return(host, now); !why.empty()) return refusal(std::move(why));
  auto text = grow_text(state, host.name, slots, now);
  if (host.use != HostUse::usable) return acceptance(std::move(text), HostReturned{*index});
  if (slots == host.slots)
    return refusal(fmt::format("host {} is used with {} already", host.name, count(slots, "slot")));
  if (slots < host.slots) {
    return refusal(fmt::format("host {} is used with {} already; horo shrink takes some away",
                               host.name, count(host.slots, "slot")));
  }
  return acceptance(std::move(text), std::nullopt);
}

}  // namespace

ResizePlan plan_resize(const ResizeView& view, const Resize& wish) {
  const auto& state = view.state;
  if (is_over(state)) return refusal("the job is ending");
  const auto index = state.hosts.find(wish.host);
  if (wish.kind == ResizeKind::grow) return plan_grow(view, wish, index);
  if (index) return plan_shrink(state, wish, *index);
  return refusal(fmt::format("the job has no host '{}'; {}", wish.host, list_hosts(state)));
}

void wish_slots(HostWishes& wishes, const Resize& wish) {
  const bool all = wish.slots == Resize::kAll;
  if (wish.kind == ResizeKind::shrink) {
    if (wish.slots > 0) wishes.limit(wish.host, wish.slots);
  } else if (!all) {
    wishes.set(wish.host, wish.slots);
  } else if (wishes.offered_slots(wish.host) > 0) {
    wishes.forget(wish.host);
  }
}

}  // namespace horo::launcher
