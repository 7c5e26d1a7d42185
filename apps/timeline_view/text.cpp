// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "apps/timeline_view/output.hpp"
#include "apps/timeline_view/verdict.hpp"

namespace horo::apps {

namespace {

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::string rank_table(const Figures& f) {
  if (f.ranks.empty()) return {};
  std::string text = fmt::format("\n{:>6}  {:>11}  {:>12}  {:>10}  {:>8}  {:>9}  {}\n", "rank",
                                 "last", "others wait", "late, mean", "waiting", "exposed", "host");
  for (const auto& [rank, r] : f.ranks) {
    const auto late = r.arrivals == 0 ? 0 : r.late_ns / static_cast<double>(r.arrivals);
    text += fmt::format(
        "{:>6}  {:>11}  {:>12}  {:>10}  {:>8}  {:>9}  {}\n", rank,
        r.arrivals == 0 ? "-" : fmt::format("{}/{}", r.last, r.arrivals),
        r.arrivals == 0 ? "-" : time_text(r.caused_wait_ns),
        r.arrivals == 0 ? "-" : time_text(late),
        f.knows_waits ? fmt::format("{:.1f} %", share(r.waited_ns, f.span_ns())) : "-",
        f.knows_waits || f.knows_compute ? fmt::format("{:.1f} %", share(r.exposed_ns, f.span_ns()))
                                         : "-",
        r.host);
  }
  return text;
}

std::string size_table(const Figures& f) {
  if (f.sizes.empty()) return {};
  std::string text = fmt::format("\n{:>10}  {:>10}  {:>10}  {:>12}  {:>13}\n", "from", "operations",
                                 "mean time", "algorithm", "bus bandwidth");
  for (const auto& [least, s] : f.sizes) {
    text += fmt::format(
        "{:>10}  {:>10}  {:>10}  {:>12}  {:>13}\n", bytes_text(static_cast<double>(least)),
        s.operations, time_text(s.ns / static_cast<double>(s.operations)), rate_text(s.bytes, s.ns),
        s.bus_bytes > 0 ? rate_text(s.bus_bytes, s.ns) : "-");
  }
  return text;
}

std::string phases(const Figures& f) {
  if (f.operations == 0) return {};
  const auto n = static_cast<double>(f.operations);
  return fmt::format(
      "\nnegotiation  mean {}, half below {}, 95 % below {}, most {}\n"
      "queue        mean {}, 95 % below {}\n"
      "fusion       {:.1f} tensors and {} an operation; {} of {} fused\n"
      "packing      {:.1f} % of moving\n",
      time_text(f.negotiation.mean()), time_text(f.negotiation.percentile(0.5)),
      time_text(f.negotiation.percentile(0.95)), time_text(f.negotiation.most()),
      time_text(f.queue.mean()), time_text(f.queue.percentile(0.95)),
      static_cast<double>(f.tensors) / n, bytes_text(f.bytes / n), f.fused, f.operations,
      share(f.packing_ns, f.moving_ns + f.packing_ns));
}

std::string slow_table(const Figures& f) {
  if (f.slowest.empty()) return {};
  std::string text = fmt::format("\n{:>10}  {:>9}  {:>11}  {:>9}  {:>9}  {:>4}  {}\n", "at", "took",
                                 "negotiation", "moving", "size", "last", "operation");
  for (const auto& s : f.slowest) {
    text += fmt::format(
        "{:>8.3f} s  {:>9}  {:>11}  {:>9}  {:>9}  {:>4}  {} {}{}\n",
        static_cast<double>(s.at_ns) / 1e9, time_text(static_cast<double>(s.took_ns)),
        time_text(static_cast<double>(s.negotiated_ns)), time_text(static_cast<double>(s.moved_ns)),
        bytes_text(static_cast<double>(s.bytes)),
        s.last_rank < 0 ? "-" : fmt::format("{}", s.last_rank), s.kind, s.name,
        s.tensors > 1 ? fmt::format(" and {} more", s.tensors - 1) : "");
  }
  return text;
}

}  // namespace

std::string summary_text(const Figures& f) {
  std::string movers;
  for (const auto& [mover, count] : f.movers)
    movers += fmt::format("{}{}", movers.empty() ? " through " : ", ", mover);
  return fmt::format("{} {}, {}: {} operations of {} tensors, {}{}\n", f.ranks.size(),
                     f.ranks.size() == 1 ? "rank" : "ranks", time_text(f.span_ns()), f.operations,
                     f.tensors, bytes_text(f.bytes), movers);
}

std::string as_text(const Figures& figures) {
  std::string text = summary_text(figures);
  for (const auto& verdict : judge(figures)) text += fmt::format("* {}\n", verdict.text);
  return text + rank_table(figures) + phases(figures) + size_table(figures) + slow_table(figures);
}

std::string as_csv(const Figures& figures) {
  std::string text =
      "rank,host,arrivals,last,caused_wait_ns,late_ns,waited_ns,communicated_ns,exposed_ns,"
      "computed_ns,dropped\n";
  for (const auto& [rank, r] : figures.ranks) {
    std::string host;
    for (const char c : r.host) host += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += fmt::format("{},\"{}\",{},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{}\n", rank,
                        host, r.arrivals, r.last, r.caused_wait_ns, r.late_ns, r.waited_ns,
                        r.communicated_ns, r.exposed_ns, r.computed_ns, r.dropped);
  }
  return text;
}

std::string compare_text(const Figures& before, const Figures& after) {
  std::string text = fmt::format("{:<24}  {:>12}  {:>12}  {:>8}\n", "", "before", "after", "ratio");
  const auto row = [&text](std::string_view what, double a, double b, std::string a_text,
                           std::string b_text) {
    text += fmt::format("{:<24}  {:>12}  {:>12}  {:>8}\n", what, a_text, b_text,
                        a > 0 ? fmt::format("{:.2f}", b / a) : std::string("-"));
  };
  const auto times = [&](std::string_view what, double a, double b) {
    row(what, a, b, time_text(a), time_text(b));
  };
  const auto per = [](double sum, std::uint64_t n) {
    return n == 0 ? 0 : sum / static_cast<double>(n);
  };
  times("span", before.span_ns(), after.span_ns());
  row("operations", static_cast<double>(before.operations), static_cast<double>(after.operations),
      fmt::format("{}", before.operations), fmt::format("{}", after.operations));
  times("time an operation", per(before.span_ns(), before.operations),
        per(after.span_ns(), after.operations));
  times("negotiation, mean", before.negotiation.mean(), after.negotiation.mean());
  times("negotiation, 95 %", before.negotiation.percentile(0.95),
        after.negotiation.percentile(0.95));
  times("moving, mean", per(before.moving_ns, before.operations),
        per(after.moving_ns, after.operations));
  const auto size_a = per(before.bytes, before.operations);
  const auto size_b = per(after.bytes, after.operations);
  row("bytes an operation", size_a, size_b, bytes_text(size_a), bytes_text(size_b));
  const auto rate_a = before.moving_ns > 0 ? before.bytes / before.moving_ns : 0;
  const auto rate_b = after.moving_ns > 0 ? after.bytes / after.moving_ns : 0;
  row("bytes moved", rate_a, rate_b, rate_text(before.bytes, before.moving_ns),
      rate_text(after.bytes, after.moving_ns));
  for (const auto& [name, figures] : {std::pair{"before", &before}, {"after", &after}}) {
    text += fmt::format("{}:\n", name);
    for (const auto& verdict : judge(*figures)) text += fmt::format("* {}\n", verdict.text);
  }
  return text;
}

}  // namespace horo::apps
