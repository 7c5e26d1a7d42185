// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/reading.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "apps/timeline_view/chrome_trace.hpp"
#include "apps/timeline_view/clocks.hpp"
#include "apps/timeline_view/entries.hpp"
#include "apps/timeline_view/input.hpp"
#include "apps/timeline_view/rank_files.hpp"
#include "timeline/chrome_writer.hpp"

namespace horo::apps {

namespace {

using Files = std::vector<std::unique_ptr<RankFile>>;

void introduce(const Files& files, Sink& sink) {
  for (const auto& file : files) {
    sink.saw_rank(file->rank(), file->identity().host_text());
    sink.dropped(file->rank(), file->about().dropped);
    if (const auto* record = file->peek(); record != nullptr)
      sink.starts(file->wall_ns(record->ticks));
  }
}

void tell_missing(const Files& files, Sink& sink) {
  for (const auto& file : files) {
    if (const auto missing = file->missing(); !missing.empty()) sink.warn(missing);
  }
}

bool can_be_read_again(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error);
}

enum class Until { first_event, end };

/// The time of a trace's earliest event; none: there is none, or it can be read but once. Damage is
/// told by whoever reads it for its figures.
std::optional<std::int64_t> beginning_of(const std::string& name, Until until) {
  std::optional<std::int64_t> earliest;
  if (!can_be_read_again(name)) return earliest;
  const auto input = Input::open(name);
  if (!input || (*input)->format() != Format::chrome) return earliest;
  const auto read = [&](char* to, std::size_t room) -> Result<std::size_t> {
    if (earliest && until == Until::first_event) return std::size_t{0};
    return (*input)->read(to, room);
  };
  const auto outcome = timeline::read_chrome(read, [&](const timeline::ChromeEvent& event) {
    if (const auto ns = ChromeTrace::time_of(event); ns)
      earliest = std::min(earliest.value_or(*ns), *ns);
  });
  return outcome ? earliest : std::nullopt;
}

Status read_trace(Input& input, Sink& sink) {
  ChromeTrace trace(sink);
  auto outcome =
      timeline::read_chrome([&input](char* to, std::size_t room) { return input.read(to, room); },
                            [&trace](const timeline::ChromeEvent& event) { trace.take(event); });
  if (!outcome) return Failure(std::move(outcome).error().context(input.path()));
  trace.finish();
  if (!outcome->missing.empty()) sink.warn(fmt::format("{}: {}", input.path(), outcome->missing));
  return {};
}

Status check_one_job(const Files& files) {
  for (const auto& file : files) {
    const auto& first = files.front()->identity();
    if (file->identity().job_text() == first.job_text()) continue;
    return fail(Errc::invalid_argument,
                "the files are of different jobs, '{}' and '{}'; look at them with --compare",
                first.job_text(), file->identity().job_text());
  }
  return {};
}

/// The files of different ranks, or of a rank's different processes.
void drop_doubles(Files& files, std::vector<std::string>& names, Sink& sink) {
  std::map<std::tuple<int, int, std::string>, std::string> seen;
  for (std::size_t i = 0; i < files.size();) {
    const auto& who = files[i]->identity();
    const auto [first, fresh] =
        seen.try_emplace({files[i]->rank(), who.pid, who.host_text()}, names[i]);
    if (fresh) {
      ++i;
      continue;
    }
    sink.warn(fmt::format("rank {} is there twice: '{}' is read, '{}' is not", files[i]->rank(),
                          first->second, names[i]));
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Reads the beginning of all ranks' files of several hosts beforehand, and moves the clocks that
/// contradict each other. What can be read but once is left as it is.
Result<EntryMatcher::Clocks> align_clocks(const std::vector<std::string>& names, const Files& files,
                                          Sink& sink) {
  const auto host_of = [](const RankFile& file) { return file.identity().host_text(); };
  const auto reference =
      std::min_element(files.begin(), files.end(),
                       [](const auto& a, const auto& b) { return a->rank() < b->rank(); });
  const auto home = host_of(**reference);
  if (std::all_of(files.begin(), files.end(),
                  [&](const auto& file) { return host_of(*file) == home; }))
    return EntryMatcher::Clocks::aligned;
  Files again;
  for (const auto& name : names) {
    if (!can_be_read_again(name)) return EntryMatcher::Clocks::unknown;
    HORO_TRY(auto input, Input::open(name));
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    again.push_back(std::move(file));
  }
  ClockLearner learner(again.size(), home);
  // In turns, whatever the clocks say.
  for (bool any = true; any && !learner.is_enough();) {
    any = false;
    for (const auto& file : again) {
      const auto* record = file->peek();
      if (record == nullptr) continue;
      learner.take(*file, *record);
      file->take();
      any = true;
    }
  }
  const auto shifts = learner.shifts();
  for (const auto& file : files) {
    const auto shift = shifts.find(host_of(*file));
    if (shift != shifts.end()) file->shift_clock(shift->second.ns);
  }
  for (const auto& [host, shift] : shifts) {
    sink.clock(host, shift.ns, shift.error_ns);
    if (shift.ns == 0) continue;
    sink.warn(fmt::format(
        "the clock of host {} is behind that of {} by {:.3f} ms{}; records are moved",
        shift.ns > 0 ? host : home, shift.ns > 0 ? home : host,
        std::abs(static_cast<double>(shift.ns)) / 1e6,
        shift.error_ns < 0
            ? " or more"
            : fmt::format(", give or take {:.3f}", static_cast<double>(shift.error_ns) / 1e6)));
  }
  return EntryMatcher::Clocks::aligned;
}

Status read_ranks(Files files, std::vector<std::string> names, Sink& sink) {
  HORO_TRY_STATUS(check_one_job(files));
  drop_doubles(files, names, sink);
  HORO_TRY(const auto clocks, align_clocks(names, files, sink));
  introduce(files, sink);
  EntryMatcher matcher(sink, files.size(), clocks);
  merge(files,
        [&matcher](RankFile& file, const timeline::Record& record) { matcher.take(file, record); });
  matcher.finish();
  tell_missing(files, sink);
  return {};
}

}  // namespace

void tell_start(const std::vector<std::string>& paths, Sink& sink) {
  const auto names = expand(paths);
  if (!names) return;
  for (const auto& name : *names) {
    if (const auto ns = beginning_of(name, Until::end); ns) sink.starts(*ns);
  }
}

Status read_all(const std::vector<std::string>& paths, Sink& sink) {
  HORO_TRY(const auto names, expand(paths));
  std::vector<std::string> ranks;
  Files files;
  std::vector<std::pair<std::int64_t, std::string>> traces;
  bool has_traces = false;
  for (const auto& name : names) {
    HORO_TRY(auto input, Input::open(name));
    if (input->format() == Format::horo) {
      HORO_TRY(auto file, RankFile::open(std::move(input)));
      files.push_back(std::move(file));
      ranks.push_back(name);
      continue;
    }
    has_traces = true;
    if (names.size() > 1 && can_be_read_again(name)) {
      traces.emplace_back(beginning_of(name, Until::first_event).value_or(0), name);
    } else {
      HORO_TRY_STATUS(read_trace(*input, sink));
    }
  }
  // As far as the traces' parts of a job are known to follow each other.
  std::stable_sort(traces.begin(), traces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [begins, name] : traces) {
    HORO_TRY(const auto input, Input::open(name));
    HORO_TRY_STATUS(read_trace(*input, sink));
  }
  if (files.empty()) return {};
  if (has_traces) {
    sink.warn(
        "a trace and the timelines of ranks are read together: where the trace's times are not "
        "those of the clock, spans and shares mean nothing");
  }
  return read_ranks(std::move(files), std::move(ranks), sink);
}

Status export_chrome(const std::vector<std::string>& paths, const Selection& selection,
                     Sink& warnings, const std::function<bool(std::string_view)>& write) {
  HORO_TRY(auto names, expand(paths));
  Files files;
  for (const auto& name : names) {
    HORO_TRY(auto input, Input::open(name));
    if (input->format() == Format::chrome)
      return fail(Errc::unsupported, "'{}' is a trace for Chrome's viewer already", name);
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    files.push_back(std::move(file));
  }
  HORO_TRY_STATUS(check_one_job(files));
  drop_doubles(files, names, warnings);
  if (auto aligned = align_clocks(names, files, warnings); !aligned)
    return Failure(std::move(aligned).error());
  std::int64_t start = 0;
  for (const auto& file : files) {
    warnings.saw_rank(file->rank(), file->identity().host_text());
    const auto* record = file->peek();
    if (record == nullptr) continue;
    const auto ns = file->wall_ns(record->ticks);
    start = start == 0 ? ns : std::min(start, ns);
  }
  const auto look_up = [&files](int rank, std::uint16_t set,
                                std::uint32_t id) -> std::optional<timeline::NameSlot> {
    for (const auto& file : files) {
      const auto* slot = file->rank() == rank ? file->name_of(set, id) : nullptr;
      if (slot != nullptr) return *slot;
    }
    return std::nullopt;
  };
  timeline::ChromeWriter writer({.start_wall_ns = start, .show_ranks = true}, look_up);
  int why = 0;
  const auto put = [&](const std::string& text) {
    if (why == 0 && !write(text)) why = errno != 0 ? errno : EIO;
  };
  put("[\n" + writer.head());
  merge(files, [&](RankFile& file, const timeline::Record& record) {
    const auto now = file.wall_ns(record.ticks);
    const double seconds = static_cast<double>(now - start) / 1e9;
    const bool wanted = selection.rank < 0 || selection.rank == file.rank();
    if (why != 0 || !wanted || seconds < selection.from || seconds > selection.to) return;
    writer.take(file.rank(), record, now, file.ns_per_tick());
    if (const auto events = writer.events(); !events.empty()) put(fmt::format(",\n{}", events));
    writer.clear();
  });
  put("\n]\n");
  tell_missing(files, warnings);
  return why == 0 ? Status{} : fail_errno(why, "standard output");
}

}  // namespace horo::apps
