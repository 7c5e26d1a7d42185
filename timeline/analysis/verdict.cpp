// SPDX-License-Identifier: Apache-2.0
#include "timeline/analysis/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "timeline/analysis/chance.hpp"

namespace horo::timeline {

namespace {

constexpr double kLeastShare = 0.05;  ///< Findings that affect a smaller share are left out.
constexpr double kSlowLink = 1.0;     ///< GB/s of bus bandwidth; 10 Gb/s Ethernet gives more.
constexpr double kSlowCopy = 4.0;     ///< GB/s; one core copies faster between memories.
constexpr std::uint64_t kLarge = 1 << 20;
constexpr double kOften = 0.5;
constexpr double kChance = 0.01;    ///< No rank is named for what is likelier than this by chance.
constexpr double kRounded = 999.5;  ///< A larger value would be written as 1e+03.

std::string in_units(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  for (; value >= kRounded && unit + 1 < units.size(); ++unit) value /= step;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string rank_name(const Figures& figures, int rank) {
  const auto found = figures.ranks.find(rank);
  if (found == figures.ranks.end() || found->second.host.empty())
    return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {}", rank, found->second.host);
}

std::string others(std::size_t more) {
  return more == 0 ? "" : fmt::format(" and {} more {}", more, more == 1 ? "name" : "names");
}

double percent(double share) {
  return share * 100;
}

/// How much longer this rank keeps others waiting than the average of the other ranks does. Where
/// ranks take turns in being late, none of them is a straggler.
double excess_ns(const Figures& f, int rank) {
  double all = 0;
  for (const auto& [other, figures] : f.ranks) all += figures.caused_wait_ns;
  const double own = f.ranks.at(rank).caused_wait_ns;
  return f.ranks.size() < 2 ? own : own - (all - own) / static_cast<double>(f.ranks.size() - 1);
}

/// The probability that a rank which is no later than others is last as often as this one.
double chance_of(const Figures& f, const RankFigures& rank) {
  const auto ranks = std::count_if(f.ranks.begin(), f.ranks.end(),
                                   [](const auto& entry) { return entry.second.arrivals > 0; });
  return chance_of_last(rank.occasions_last, f.occasions, static_cast<std::uint64_t>(ranks));
}

std::string chance_text(double p) {
  constexpr double kLeast = 1e-9;
  return p < kLeast ? "p < 1e-9" : fmt::format("p = {:.1g}", p);
}

/// "last in 3 of 4 operations, on average 20 ms after the rank before it"
std::string lateness_text(const Figures& f, const RankFigures& rank) {
  return fmt::format("last in {} of {} operations, on average {} after the rank before it",
                     rank.last, f.with_arrivals,
                     time_text(rank.last_by_ns / static_cast<double>(rank.last)));
}

std::string waits_text(const Figures& f, double share) {
  return fmt::format("operations wait {} for their last rank, {:.0f} % of the time",
                     time_text(f.negotiation.mean()), percent(std::min(share, 1.0)));
}

/// Finds the rank that arrives last, weighed by how long the others waited for it.
void judge_stragglers(const Figures& f, std::vector<Verdict>& to) {
  const auto& [number, rank] =
      *std::max_element(f.ranks.begin(), f.ranks.end(), [](const auto& a, const auto& b) {
        return a.second.caused_wait_ns < b.second.caused_wait_ns;
      });
  const double weight = f.span_ns() > 0 ? excess_ns(f, number) / f.span_ns() : 0;
  if (weight < kLeastShare) return;
  if (const double p = chance_of(f, rank); p >= kChance) {
    to.push_back({"late_ranks", weight,
                  fmt::format("{}; {} was {}, which may be chance ({}); a recording of more steps "
                              "tells",
                              waits_text(f, f.held_up_ns / f.span_ns()), rank_name(f, number),
                              lateness_text(f, rank), chance_text(p))});
    return;
  }
  to.push_back({"straggler", weight,
                fmt::format("{} is a straggler: {}; {:.0f} % of the time other ranks wait for it; "
                            "check its input pipeline and its host",
                            rank_name(f, number), lateness_text(f, rank),
                            percent(rank.caused_wait_ns / f.span_ns()))});
}

/// Judges waits for the last rank where most operations do not show which rank that is.
void judge_unnamed_waits(const Figures& f, std::vector<Verdict>& to) {
  const double share = f.span_ns() > 0 ? f.held_up_ns / f.span_ns() : 0;
  if (share < kLeastShare || f.operations == 0) return;
  const double weight = std::min(share, 1.0);
  auto text = waits_text(f, share);
  if (f.with_arrivals == 0) {
    text += "; this trace does not show which rank that is, a trace with --timeline-all-ranks does";
    to.push_back({"late_ranks", weight, std::move(text)});
    return;
  }
  text += fmt::format("; only {} of {} operations show which rank that is", f.with_arrivals,
                      f.operations);
  const auto worst =
      std::max_element(f.ranks.begin(), f.ranks.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.occasions_last, a.second.last_by_ns) <
               std::pair(b.second.occasions_last, b.second.last_by_ns);
      });
  if (worst == f.ranks.end() || worst->second.last == 0) {
    to.push_back({"late_ranks", weight, std::move(text)});
    return;
  }
  const auto& [number, rank] = *worst;
  const double p = chance_of(f, rank);
  if (p < kChance) {
    to.push_back(
        {"straggler", weight,
         fmt::format("{} is probably a straggler: {}, too often for chance ({}); {}; check "
                     "its input pipeline and its host",
                     rank_name(f, number), lateness_text(f, rank), chance_text(p), text)});
  } else {
    to.push_back({"late_ranks", weight,
                  fmt::format("{}: {} was {}, which may be chance ({})", text, rank_name(f, number),
                              lateness_text(f, rank), chance_text(p))});
  }
}

void judge_lateness(const Figures& f, std::vector<Verdict>& to) {
  const bool named = std::any_of(f.ranks.begin(), f.ranks.end(),
                                 [](const auto& entry) { return entry.second.last > 0; });
  if (named && f.with_arrivals * 2 >= f.operations) {
    judge_stragglers(f, to);
  } else {
    judge_unnamed_waits(f, to);
  }
}

/// Reports uneven arrival without a single late rank; used where nothing else stands out.
void judge_turns(const Figures& f, std::vector<Verdict>& to) {
  constexpr double kMuch = 0.2;
  const double share = f.span_ns() > 0 ? std::min(f.held_up_ns / f.span_ns(), 1.0) : 0;
  if (share < kMuch || f.with_arrivals == 0) return;
  to.push_back(
      {"turns", share,
       fmt::format("ranks take turns in being last: operations wait {} for their last rank, "
                   "{:.0f} % of the time; the work is uneven, or ranks share cores",
                   time_text(f.negotiation.mean()), percent(share))});
}

/// Weighed by the share that the verdicts on operations before it leave unexplained.
void judge_exposure(const Figures& f, std::vector<Verdict>& to) {
  if ((!f.knows_waits && !f.knows_compute) || f.span_ns() <= 0) return;
  double exposed = 0;
  int ranks = 0;
  for (const auto& [rank, figures] : f.ranks) {
    if (figures.communicated_ns == 0 && figures.waited_ns == 0) continue;
    exposed += figures.exposed_ns / f.span_ns();
    ++ranks;
  }
  if (ranks == 0) return;
  exposed /= ranks;
  if (exposed < kLeastShare) return;
  double explained = 0;
  for (const auto& verdict : to) {
    if (verdict.kind == "slow_link" || verdict.kind == "slow_packing" ||
        verdict.kind == "small_buckets")
      explained += verdict.weight;
  }
  to.push_back(
      {"exposed", std::max(0.0, exposed - explained),
       fmt::format("communication is exposed: {:.0f} % of the time a rank waits for it without "
                   "computing; submit tensors as soon as they are ready, or compute more per step",
                   percent(std::min(exposed, 1.0)))});
}

void judge_bandwidth(const Figures& f, std::vector<Verdict>& to) {
  double bus = 0;
  double ns = 0;
  for (const auto& [least, size] : f.sizes) {
    if (least < kLarge) continue;
    bus += size.bus_bytes;
    ns += size.ns;
  }
  if (ns == 0 || bus / ns >= kSlowLink || ns / f.span_ns() < kLeastShare || bus == 0) return;
  const auto mover = std::max_element(f.movers.begin(), f.movers.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  const bool within = mover != f.movers.end() && mover->first == "SHM";
  // The weight leaves out the time that a link of kSlowLink would need.
  to.push_back(
      {"slow_link", ns / f.span_ns() * (1 - bus / ns / kSlowLink),
       fmt::format("a slow link: operations of 1 MiB and more move at {} of bus "
                   "bandwidth{}, {:.0f} % of the time; {}",
                   rate_text(bus, ns),
                   mover == f.movers.end() ? "" : fmt::format(" through {}", mover->first),
                   percent(std::min(ns / f.span_ns(), 1.0)),
                   within ? "check that each rank has a core of its own"
                          : "horo discover shows the networks, --network-interfaces selects one")});
}

void judge_fusion(const Figures& f, std::vector<Verdict>& to) {
  const double whole = f.moving_ns + f.packing_ns;
  if (whole <= 0 || f.span_ns() <= 0) return;
  const double packing = f.packing_ns / f.span_ns();
  // Each byte is copied in and out.
  const double rate = f.packing_ns > 0 ? 2 * f.packed_bytes / f.packing_ns : kSlowCopy;
  const double weight = packing * (1 - rate / kSlowCopy);
  if (f.packing_ns / whole > 0.2 && weight >= kLeastShare) {
    to.push_back(
        {"slow_packing", weight,
         fmt::format(
             "slow packing: copies to and from fusion buffers take {:.0f} % of the "
             "operations, {:.0f} % of the time, at {}; tensors in shared memory (horo_alloc) "
             "need no copies",
             percent(f.packing_ns / whole), percent(packing),
             rate_text(2 * f.packed_bytes, f.packing_ns))});
  }
  const double small = std::min(f.small_ns / f.span_ns(), 1.0);  // They may overlap.
  const double often = static_cast<double>(f.small) / static_cast<double>(f.operations);
  if (often > kOften && small >= kLeastShare) {
    to.push_back(
        {"small_buckets", small,
         fmt::format("small buckets: {:.0f} % of the operations move less than {} and take "
                     "{:.0f} % of the time; submit all tensors before waiting for the first one",
                     percent(often), bytes_text(static_cast<double>(kSmall)), percent(small))});
  }
}

/// Compares the time that operations on devices take with the time that the devices work for them.
void judge_devices(const Figures& f, std::vector<Verdict>& to) {
  constexpr double kQueues = 0.5;
  constexpr double kBusy = 0.9;
  const auto& device = f.device;
  if (device.host_ns <= 0 || device.activities.empty() || f.span_ns() <= 0) return;
  const double share = device.worked_ns / device.host_ns;
  const double waits = (device.host_ns - device.worked_ns) / f.span_ns();
  const double works = std::min(device.worked_ns / f.span_ns(), 1.0);
  const bool staged = device.activities.contains("COPY_TO_HOST");
  if (share < kQueues && waits >= kLeastShare) {
    to.push_back(
        {"device_queue", waits,
         fmt::format(
             "operations queue: a device works for {:.0f} % of the time that they take, {} of "
             "{}; {}",
             percent(share), time_text(device.worked_ns), time_text(device.host_ns),
             staged ? "in between their data moves through host memory; horo check-build "
                      "says whether NCCL can be used"
                    : "their tensors are ready late, or other work comes first on the "
                      "device")});
  } else if (share >= kBusy && works >= kLeastShare) {
    const auto& [activity, most] =
        *std::max_element(device.activities.begin(), device.activities.end(),
                          [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; });
    double all = 0;
    for (const auto& [name, one] : device.activities) all += one.ns;
    // A kernel that moves data between GPUs begins alone and ends with those of all ranks.
    const bool together = activity.starts_with("NCCL") || activity.starts_with("IPC");
    to.push_back(
        {"device_bound", works,
         fmt::format("operations take as long as the device works for them, {:.0f} % of the time: "
                     "{:.0f} % of that is {}{}; faster links between the GPUs or fewer bytes help, "
                     "earlier submissions do not",
                     percent(works), percent(all > 0 ? most.ns / all : 0), activity,
                     together ? ", in which the device also waits for those of the other ranks: a "
                                "rank whose times are much shorter than the others' comes late"
                              : "")});
  }
}

/// Tells what was not recorded.
void judge_records(const Figures& f, std::vector<Verdict>& to) {
  std::uint64_t dropped = 0;
  for (const auto& [rank, figures] : f.ranks) dropped += figures.dropped;
  if (dropped != 0) {
    to.push_back(
        {"drops", 0,
         fmt::format("{} records were dropped: more than 8 threads of a rank submit or wait",
                     dropped)});
  }
  for (const auto& [reason, operations] : f.device.missing) {
    to.push_back(
        {"no_device_times", 0,
         fmt::format("the times of a device are missing for {} operation{}: {}; the log of "
                     "the rank has the driver's words",
                     operations, operations == 1 ? "" : "s", reason)});
  }
}

/// Finds the tensor that the job was blocked on at the end.
void judge_end(const Figures& f, std::vector<Verdict>& to) {
  constexpr double kLong = 5e9;  // Shorter waits occur in every job.
  const auto* longest = static_cast<const UnfinishedOperation*>(nullptr);
  for (const auto& what : f.unfinished) {
    const auto was_lost = [&f](int rank) { return f.culprits.contains(rank); };
    if (std::any_of(what.missing.begin(), what.missing.end(), was_lost)) continue;
    if (longest == nullptr || what.when.from < longest->when.from) longest = &what;
  }
  if (longest == nullptr) return;
  const auto waited = static_cast<double>(longest->when.to - longest->when.from);
  if (waited < kLong) return;
  const auto more = longest->missing.size() - 1;
  to.push_back(
      {"hang", 1,
       fmt::format("at the end {}{} had not submitted '{}', for which {} {} waited {}; check what "
                   "the rank did at that time, or whether it skips this tensor",
                   rank_name(f, longest->missing.front()),
                   more == 0 ? "" : fmt::format(" and {} more", more), longest->name,
                   longest->waiting.size(), longest->waiting.size() == 1 ? "rank had" : "ranks had",
                   time_text(waited))});
}

}  // namespace

std::string time_text(double ns) {
  if (ns < kRounded) return fmt::format("{:.0f} ns", ns);
  if (ns < kRounded * 1e3) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < kRounded * 1e6) return fmt::format("{:.3g} ms", ns / 1e6);
  const double seconds = ns / 1e9;
  return seconds < kRounded * 10 ? fmt::format("{:.4g} s", seconds)
                                 : fmt::format("{:.0f} s", seconds);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  return in_units(bytes, 1024, kUnits);
}

std::string rate_text(double bytes, double ns) {
  constexpr std::array<std::string_view, 5> kUnits{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return ns > 0 ? in_units(bytes / ns * 1e9, 1000, kUnits) : "-";
}

std::vector<Verdict> judge(const Figures& figures) {
  std::vector<Verdict> verdicts;
  for (const auto& [rank, said] : figures.culprits) {
    verdicts.push_back({"lost", 1,
                        rank < 0 ? fmt::format("{} ranks saw the job end early", said)
                                 : fmt::format("{} was lost, as {} other ranks reported",
                                               rank_name(figures, rank), said)});
  }
  judge_end(figures, verdicts);
  if (figures.stalls != 0) {
    verdicts.push_back(
        {"stall", 1, fmt::format("stalls: the stall check warned {} times", figures.stalls)});
  }
  if (!figures.mismatches.empty()) {
    const auto& name = figures.mismatches.begin()->first;
    verdicts.push_back({"mismatch", 1,
                        fmt::format("mismatches: the ranks submitted different things as '{}'{}",
                                    name, others(figures.mismatches.size() - 1))});
  }
  judge_lateness(figures, verdicts);
  judge_bandwidth(figures, verdicts);
  judge_fusion(figures, verdicts);
  judge_exposure(figures, verdicts);
  judge_devices(figures, verdicts);
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict& a, const Verdict& b) { return a.weight > b.weight; });
  judge_records(figures, verdicts);
  if (verdicts.empty()) judge_turns(figures, verdicts);
  if (verdicts.empty()) {
    verdicts.push_back(
        {"none", 0, figures.operations == 0 ? "nothing was recorded" : "nothing stands out"});
  }
  return verdicts;
}

}  // namespace horo::timeline
