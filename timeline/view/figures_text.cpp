// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/figures_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/json.hpp"
#include "timeline/analysis/verdict.hpp"

namespace horo::timeline {

namespace {

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::string rank_table(const Figures& f) {
  if (f.ranks.empty()) return {};
  std::string text = fmt::format("\n{:>6}  {:>11}  {:>12}  {:>10}  {:>8}  {:>9}  {}\n", "rank",
                                 "last", "others wait", "late, mean", "waiting", "exposed", "host");
  for (const auto& [rank, r] : f.ranks) {
    if (!f.shows(rank)) continue;
    const auto late = r.arrivals == 0 ? 0 : r.late_ns / static_cast<double>(r.arrivals);
    text += fmt::format(
        "{:>6}  {:>11}  {:>12}  {:>10}  {:>8}  {:>9}  {}\n", rank,
        r.arrivals == 0 ? "-" : fmt::format("{}/{}", r.last, r.arrivals),
        r.arrivals == 0 ? "-" : time_text(r.caused_wait_ns),
        r.arrivals == 0 ? "-" : time_text(late),
        f.knows_waits ? fmt::format("{:.1f} %", share(r.waited_ns, f.span_ns())) : "-",
        f.knows_waits || f.knows_compute ? fmt::format("{:.1f} %", share(r.exposed_ns, f.span_ns()))
                                         : "-",
        printable(r.host));
  }
  return text;
}

std::string size_table(const Figures& f) {
  if (f.sizes.empty()) return {};
  std::string text =
      fmt::format("\n{:>10}  {:>10}  {:>10}  {:>12}  {:>13}  {:>11}\n", "from", "operations",
                  "mean time", "algorithm", "bus bandwidth", "of the best");
  for (const auto& [least, s] : f.sizes) {
    const bool crosses = s.bus_bytes > 0;
    text += fmt::format("{:>10}  {:>10}  {:>10}  {:>12}  {:>13}  {:>11}\n",
                        bytes_text(static_cast<double>(least)), s.operations,
                        time_text(s.ns / static_cast<double>(s.operations)),
                        rate_text(s.bytes, s.ns), crosses ? rate_text(s.bus_bytes, s.ns) : "-",
                        crosses ? fmt::format("{:.0f} %", share(s.bus_bytes / s.ns, s.best)) : "-");
  }
  return text;
}

std::string skew_table(const Figures& f) {
  if (f.skews.empty()) return {};
  std::string text = fmt::format("\n{:>9}  {:>9}  {:>10}  {}\n", "skew", "most", "operations",
                                 "from the first rank to the last, by first tensor");
  for (const auto& skew : f.skews) {
    text += fmt::format("{:>9}  {:>9}  {:>10}  {}\n",
                        time_text(skew.ns / static_cast<double>(skew.operations)),
                        time_text(skew.most_ns), skew.operations, printable(skew.name));
  }
  return text;
}

/// How the time divides into phases. Time in which data moves counts as such, whatever else
/// happens.
std::string shares_text(const Figures& f) {
  if (f.span_ns() <= 0 || f.operations == 0) return {};
  const auto of = [&f](double ns) { return share(ns, f.span_ns()); };
  const double idle = std::max(0.0, f.span_ns() - f.busy_ns - f.held_up_ns - f.packing_ns);
  auto text = fmt::format(
      "{:.0f} % of the time data moves, {:.0f} % it is packed, {:.0f} % operations wait for ranks, "
      "{:.0f} % no operation is in progress\n",
      of(f.busy_ns), of(f.packing_ns), of(f.held_up_ns), of(idle));
  if (const auto n = f.step.count(); n != 0) {
    text += fmt::format("{} steps of {} +- {}, half below {}, 95 % below {}: {:.3g} a second\n", n,
                        time_text(f.step.mean()), time_text(2 * f.step.error()),
                        time_text(f.step.percentile(0.5)), time_text(f.step.percentile(0.95)),
                        1e9 / std::max(1.0, f.step.mean()));
  }
  return text;
}

std::string clocks_text(const Figures& f) {
  std::string text;
  for (const auto& [host, clock] : f.clocks) {
    text += fmt::format(
        "{}{}{}{}", text.empty() ? "clocks       " : ", ", printable(host),
        clock.moved_ns == 0
            ? ""
            : fmt::format(" moved by {:.3f} ms,", static_cast<double>(clock.moved_ns) / 1e6),
        clock.error_ns < 0 ? " at the least"
                           : fmt::format(" +- {}", time_text(static_cast<double>(clock.error_ns))));
  }
  return text.empty() ? text : text + "\n";
}

/// How many operations took each path between the hosts, and why.
std::string paths_text(const Figures& f) {
  std::string text;
  for (const auto& [path, operations] : f.paths) {
    text += fmt::format("{:<12} {} operation{}: {}\n", printable(path.first), operations,
                        operations == 1 ? "" : "s", printable(path.second));
  }
  return text.empty() ? text : "\nbetween hosts\n" + text;
}

std::string phases(const Figures& f) {
  if (f.operations == 0) return {};
  const auto n = static_cast<double>(f.operations);
  return fmt::format(
      "\nnegotiation  mean {}, half below {}, 95 % below {}, most {}\n"
      "queue        mean {}, 95 % below {}\n"
      "fusion       {:.1f} tensors and {} an operation{}; {} of {} fused\n"
      "packing      {:.1f} % of moving\n",
      time_text(f.negotiation.mean()), time_text(f.negotiation.percentile(0.5)),
      time_text(f.negotiation.percentile(0.95)), time_text(f.negotiation.most()),
      time_text(f.queue.mean()), time_text(f.queue.percentile(0.95)),
      static_cast<double>(f.tensors) / n, bytes_text(f.bytes / n),
      f.step.count() == 0 || f.step.sum() <= 0
          ? ""
          : fmt::format(", {:.1f} operations a step", n * f.step.mean() / f.span_ns()),
      f.fused, f.operations, share(f.packing_ns, f.moving_ns + f.packing_ns));
}

/// The work of devices, and how much of the operations' time that is.
std::string device_table(const Figures& f) {
  const auto& device = f.device;
  if (device.activities.empty()) return {};
  std::string text = fmt::format("\n{:>10}  {:>9}  {:>9}  {}\n", "times", "mean", "all",
                                 "on devices, over all ranks");
  for (const auto& [name, activity] : device.activities) {
    text += fmt::format("{:>10}  {:>9}  {:>9}  {}\n", activity.times,
                        time_text(activity.ns / static_cast<double>(activity.times)),
                        time_text(activity.ns), printable(name));
  }
  if (device.host_ns <= 0) return text;
  return text + fmt::format(
                    "{} operations on devices took {}, and a rank's device worked for {}, "
                    "{:.0f} % of it\n",
                    device.operations, time_text(device.host_ns), time_text(device.worked_ns),
                    share(device.worked_ns, device.host_ns));
}

std::string slow_table(const Figures& f) {
  if (f.slowest.empty()) return {};
  const bool devices = f.device.operations != 0;
  const auto device_column = [devices](const std::string& cell) {
    return devices ? fmt::format("  {:>9}", cell) : std::string();
  };
  std::string text =
      fmt::format("\n{:>10}  {:>9}  {:>11}  {:>9}{}  {:>9}  {:>4}  {}\n", "at", "took",
                  "negotiation", "moving", device_column("device"), "size", "last", "operation");
  for (const auto& s : f.slowest) {
    text += fmt::format(
        "{:>8.3f} s  {:>9}  {:>11}  {:>9}{}  {:>9}  {:>4}  {} {}{}\n",
        static_cast<double>(s.at_ns) / 1e9, time_text(static_cast<double>(s.took_ns)),
        time_text(static_cast<double>(s.negotiated_ns)), time_text(static_cast<double>(s.moved_ns)),
        device_column(s.device_ns == 0 ? "-" : time_text(static_cast<double>(s.device_ns))),
        bytes_text(static_cast<double>(s.bytes)),
        s.last_rank < 0 ? "-" : fmt::format("{}", s.last_rank), printable(s.kind),
        printable(s.name), s.tensors > 1 ? fmt::format(" and {} more", s.tensors - 1) : "");
  }
  return text;
}

}  // namespace

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto length = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) text[i] = '?';
    // U+0080 to U+009F.
    if (length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      text[i] = text[i + 1] = '?';
    i += std::max<std::size_t>(length, 1);
  }
  return text;
}

std::string summary_text(const Figures& f) {
  std::string movers;
  for (const auto& [mover, count] : f.movers)
    movers += fmt::format("{}{}", movers.empty() ? " through " : ", ", mover);
  return fmt::format("{} {}, {}: {} operations of {} tensors, {}{}\n", f.ranks.size(),
                     f.ranks.size() == 1 ? "rank" : "ranks", time_text(f.span_ns()), f.operations,
                     f.tensors, bytes_text(f.bytes), movers);
}

namespace {

/// The last changes of the tuning.
std::string switches_text(const Figures& f) {
  constexpr std::size_t kShown = 10;
  if (f.switches.empty()) return {};
  const auto count = f.switches.size();
  auto text = fmt::format("tuning changed {} times{}:\n", count,
                          count > kShown ? fmt::format(", the last {}", kShown) : "");
  for (auto i = count - std::min(count, kShown); i < count; ++i) {
    const auto& one = f.switches[i];
    text += fmt::format("  at {}: {}\n", time_text(static_cast<double>(one.ns - f.origin_ns)),
                        one.changes);
  }
  return text;
}

/// The last generations of an elastic job.
std::string generations_text(const Figures& f) {
  constexpr std::size_t kShown = 10;
  if (f.generations.empty()) return {};
  const auto count = f.generations.size();
  auto text = count > kShown ? fmt::format("{} generations, the last {}:\n", count, kShown)
                             : std::string("generations:\n");
  auto mark = f.generations.begin();
  std::advance(mark, static_cast<std::ptrdiff_t>(count - std::min(count, kShown)));
  for (; mark != f.generations.end(); ++mark) {
    const auto& one = mark->second;
    text += fmt::format("  at {}: generation {}: {} rank{}, {} of the one before\n",
                        time_text(static_cast<double>(one.ns - f.origin_ns)), one.generation,
                        one.ranks, one.ranks == 1 ? "" : "s", one.survivors);
  }
  return text;
}

}  // namespace

std::string as_text(const Figures& figures) {
  std::string text = summary_text(figures);
  for (const auto& verdict : judge(figures)) text += fmt::format("* {}\n", printable(verdict.text));
  return text + shares_text(figures) + rank_table(figures) + phases(figures) + paths_text(figures) +
         clocks_text(figures) + size_table(figures) + device_table(figures) + skew_table(figures) +
         slow_table(figures) + generations_text(figures) + switches_text(figures);
}

std::string as_csv(const Figures& figures) {
  std::string text =
      "rank,host,arrivals,last,caused_wait_ns,late_ns,waited_ns,communicated_ns,exposed_ns,"
      "computed_ns,dropped\n";
  for (const auto& [rank, r] : figures.ranks) {
    if (!figures.shows(rank)) continue;
    std::string host;
    for (const char c : printable(r.host))
      host += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += fmt::format("{},\"{}\",{},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{}\n", rank,
                        host, r.arrivals, r.last, r.caused_wait_ns, r.late_ns, r.waited_ns,
                        r.communicated_ns, r.exposed_ns, r.computed_ns, r.dropped);
  }
  return text;
}

namespace {

/// A figure of one of two runs, with its standard error and its text.
struct Compared {
  double value = 0;
  double error = 0;
  std::string text;
};

/// One line: both values, their ratio, and whether the ratio differs from 1 by more than noise.
std::string row_text(std::string_view what, const Compared& a, const Compared& b) {
  std::string ratio = "-";
  std::string noise;
  if (a.value > 0 && b.text != "-") {
    ratio = fmt::format("{:.2f}", b.value / a.value);
    const double error = 2 * std::hypot(a.error / a.value, b.error / std::max(b.value, 1e-300));
    if (a.error > 0 && b.error > 0) {
      noise = std::abs(b.value / a.value - 1) <= error
                  ? fmt::format("+- {:.0f} %, within noise", error * 100)
                  : fmt::format("+- {:.0f} %", error * 100);
    }
  }
  auto line = fmt::format("{:<24}  {:>12}  {:>12}  {:>8}  {}", what, a.text, b.text, ratio, noise);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

Compared mean_of(const Histogram& h) {
  return {h.mean(), h.error(), h.count() == 0 ? "-" : time_text(h.mean())};
}

Compared per_operation(double sum, const Figures& f, std::string (*text)(double)) {
  const double value = f.operations == 0 ? 0 : sum / static_cast<double>(f.operations);
  return {value, 0, text(value)};
}

Compared device_time_of(const Figures& f) {
  if (f.device.operations == 0) return {0, 0, "-"};
  const double ns = f.device.worked_ns / static_cast<double>(f.device.operations);
  return {ns, 0, time_text(ns)};
}

/// A rank's time as a share of the span, averaged over the ranks.
Compared share_of(const Figures& f, double RankFigures::*what, bool known) {
  if (!known) return {0, 0, "-"};
  double sum = 0;
  for (const auto& [rank, figures] : f.ranks) sum += f.shows(rank) ? figures.*what : 0;
  const auto shown = f.only < 0 ? f.ranks.size() : 1;
  const double value = shown == 0 ? 0 : share(sum, f.span_ns()) / static_cast<double>(shown);
  return {value, 0, fmt::format("{:.1f} %", value)};
}

}  // namespace

std::string compare_text(const Figures& before, const Figures& after) {
  auto text = fmt::format("{:<24}  {:>12}  {:>12}  {:>8}\n", "", "before", "after", "ratio");
  const auto row = [&](std::string_view what, const auto& of) {
    text += row_text(what, of(before), of(after));
  };
  row("span", [](const Figures& f) { return Compared{f.span_ns(), 0, time_text(f.span_ns())}; });
  row("step", [](const Figures& f) { return mean_of(f.step); });
  row("operations", [](const Figures& f) {
    return Compared{static_cast<double>(f.operations), 0, fmt::format("{}", f.operations)};
  });
  row("time an operation",
      [](const Figures& f) { return per_operation(f.span_ns(), f, time_text); });
  row("negotiation, mean", [](const Figures& f) { return mean_of(f.negotiation); });
  row("negotiation, 95 %", [](const Figures& f) {
    const auto value = f.negotiation.percentile(0.95);
    return Compared{value, 0, time_text(value)};
  });
  row("queue, mean", [](const Figures& f) { return mean_of(f.queue); });
  row("moving, mean", [](const Figures& f) { return mean_of(f.moving); });
  row("packing", [](const Figures& f) { return per_operation(f.packing_ns, f, time_text); });
  row("device, an operation", device_time_of);
  row("bytes an operation", [](const Figures& f) { return per_operation(f.bytes, f, bytes_text); });
  row("bytes moved", [](const Figures& f) {
    const double rate = f.moving_ns > 0 ? f.bytes / f.moving_ns : 0;
    return Compared{rate, 0, rate_text(f.bytes, f.moving_ns)};
  });
  row("waiting",
      [](const Figures& f) { return share_of(f, &RankFigures::waited_ns, f.knows_waits); });
  row("exposed", [](const Figures& f) {
    return share_of(f, &RankFigures::exposed_ns, f.knows_waits || f.knows_compute);
  });
  for (const auto& [name, figures] : {std::pair{"before", &before}, {"after", &after}}) {
    text += fmt::format("{}:\n", name);
    for (const auto& verdict : judge(*figures))
      text += fmt::format("* {}\n", printable(verdict.text));
  }
  return text;
}

}  // namespace horo::timeline
