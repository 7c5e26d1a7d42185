// SPDX-License-Identifier: Apache-2.0
#include "timeline/input/reading.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "timeline/chrome/chrome_writer.hpp"
#include "timeline/input/chrome_operations.hpp"
#include "timeline/input/clock_estimator.hpp"
#include "timeline/input/entry_matcher.hpp"
#include "timeline/input/rank_files.hpp"
#include "timeline/input/timeline_input.hpp"

namespace horo::timeline {

namespace {

using Files = std::vector<std::unique_ptr<RankFile>>;

void report_ranks(const Files& files, OperationSink& sink) {
  for (const auto& file : files) {
    sink.saw_rank(file->rank(), file->identity().host_text());
    sink.dropped(file->rank(), file->about().dropped);
    if (const auto* record = file->peek(); record != nullptr)
      sink.starts(file->wall_ns(record->ticks));
  }
}

void warn_missing(const Files& files, OperationSink& sink) {
  for (const auto& file : files) {
    if (const auto missing = file->missing(); !missing.empty()) sink.warn(missing);
  }
}

bool can_be_read_again(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error);
}

enum class Until { first_event, end };

/// The time of a trace's earliest event; none where it has no event or can be read only once.
/// Damage is not reported here, but when the trace is read for its figures.
std::optional<std::int64_t> beginning_of(const std::string& name, Until until) {
  std::optional<std::int64_t> earliest;
  if (!can_be_read_again(name)) return earliest;
  const auto input = TimelineInput::open(name);
  if (!input || (*input)->format() != InputFormat::chrome) return earliest;
  const auto read = [&](char* to, std::size_t room) -> Result<std::size_t> {
    if (earliest && until == Until::first_event) return std::size_t{0};
    return (*input)->read(to, room);
  };
  const auto outcome = read_chrome(read, [&](const ChromeEvent& event) {
    if (const auto ns = ChromeOperations::time_of(event); ns)
      earliest = std::min(earliest.value_or(*ns), *ns);
  });
  return outcome ? earliest : std::nullopt;
}

Status read_trace(TimelineInput& input, OperationSink& sink) {
  ChromeOperations trace(sink);
  auto outcome = read_chrome([&input](char* to, std::size_t room) { return input.read(to, room); },
                             [&trace](const ChromeEvent& event) { trace.take(event); });
  if (!outcome) return Failure(std::move(outcome).error().context(input.path()));
  trace.finish();
  if (!outcome->missing.empty()) sink.warn(fmt::format("{}: {}", input.path(), outcome->missing));
  return {};
}

Status check_one_job(const Files& files) {
  for (const auto& file : files) {
    const auto& first = files.front()->identity();
    if (file->identity().job_text() == first.job_text()) continue;
    return fail(
        Errc::invalid_argument,
        "the files belong to different jobs, '{}' and '{}'; use --compare to compare two jobs",
        first.job_text(), file->identity().job_text());
  }
  return {};
}

/// Drops files of a process that another file covers already. Several processes of one rank, after
/// a restart, are kept.
void drop_duplicates(Files& files, std::vector<std::string>& names, OperationSink& sink) {
  std::map<std::tuple<int, int, std::string>, std::string> seen;
  for (std::size_t i = 0; i < files.size();) {
    const auto& who = files[i]->identity();
    const auto [first, fresh] =
        seen.try_emplace({files[i]->rank(), who.pid, who.host_text()}, names[i]);
    if (fresh) {
      ++i;
      continue;
    }
    sink.warn(fmt::format("rank {} has two files: '{}' is read, '{}' is not", files[i]->rank(),
                          first->second, names[i]));
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::map<std::string, ClockShift> estimate_clocks(const Files& files,
                                                  const std::string& reference) {
  ClockEstimator estimator(files.size(), reference);
  // One record of each file in turn, because the clocks cannot be trusted yet.
  for (bool any = true; any && !estimator.is_enough();) {
    any = false;
    for (const auto& file : files) {
      const auto* record = file->peek();
      if (record == nullptr) continue;
      estimator.take(*file, *record);
      file->take();
      any = true;
    }
  }
  return estimator.shifts();
}

std::string shift_text(const std::string& host, const std::string& reference,
                       const ClockShift& shift) {
  const bool behind = shift.ns > 0;
  return fmt::format("the clock of host {} is behind that of {} by {:.3f} ms{}; records are moved",
                     behind ? host : reference, behind ? reference : host,
                     std::abs(static_cast<double>(shift.ns)) / 1e6,
                     shift.error_ns < 0 ? " or more"
                                        : fmt::format(", give or take {:.3f}",
                                                      static_cast<double>(shift.error_ns) / 1e6));
}

/// Where ranks ran on several hosts: reads the beginning of all files beforehand, and corrects
/// clocks that contradict each other. Sources that can be read only once are not corrected.
Result<EntryMatcher::Clocks> align_clocks(const std::vector<std::string>& names, const Files& files,
                                          OperationSink& sink) {
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
    HORO_TRY(auto input, TimelineInput::open(name));
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    again.push_back(std::move(file));
  }
  const auto shifts = estimate_clocks(again, home);
  for (const auto& file : files) {
    const auto shift = shifts.find(host_of(*file));
    if (shift != shifts.end()) file->shift_clock(shift->second.ns);
  }
  for (const auto& [host, shift] : shifts) {
    sink.clock(host, shift.ns, shift.error_ns);
    if (shift.ns != 0) sink.warn(shift_text(host, home, shift));
  }
  return EntryMatcher::Clocks::aligned;
}

Status read_ranks(Files files, std::vector<std::string> names, OperationSink& sink) {
  HORO_TRY_STATUS(check_one_job(files));
  drop_duplicates(files, names, sink);
  HORO_TRY(const auto clocks, align_clocks(names, files, sink));
  report_ranks(files, sink);
  EntryMatcher matcher(sink, files.size(), clocks);
  merge_by_time(files,
                [&matcher](RankFile& file, const Record& record) { matcher.take(file, record); });
  matcher.finish();
  warn_missing(files, sink);
  return {};
}

/// Opens the files of one job's ranks, with their clocks corrected.
Result<Files> open_for_export(const std::vector<std::string>& paths, OperationSink& warnings) {
  HORO_TRY(auto names, expand_paths(paths));
  Files files;
  for (const auto& name : names) {
    HORO_TRY(auto input, TimelineInput::open(name));
    if (input->format() == InputFormat::chrome)
      return fail(Errc::unsupported, "'{}' is a trace for Chrome's viewer already", name);
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    files.push_back(std::move(file));
  }
  HORO_TRY_STATUS(check_one_job(files));
  drop_duplicates(files, names, warnings);
  if (auto aligned = align_clocks(names, files, warnings); !aligned)
    return Failure(std::move(aligned).error());
  for (const auto& file : files) warnings.saw_rank(file->rank(), file->identity().host_text());
  return files;
}

/// The time of the first record of all files; 0 where there is none.
std::int64_t first_record_ns(const Files& files) {
  std::int64_t first = 0;
  for (const auto& file : files) {
    const auto* record = file->peek();
    if (record == nullptr) continue;
    const auto ns = file->wall_ns(record->ticks);
    first = first == 0 ? ns : std::min(first, ns);
  }
  return first;
}

}  // namespace

void report_start(const std::vector<std::string>& paths, OperationSink& sink) {
  const auto names = expand_paths(paths);
  if (!names) return;
  for (const auto& name : *names) {
    if (const auto ns = beginning_of(name, Until::end); ns) sink.starts(*ns);
  }
}

Status read_all(const std::vector<std::string>& paths, OperationSink& sink) {
  HORO_TRY(const auto names, expand_paths(paths));
  std::vector<std::string> ranks;
  Files files;
  std::vector<std::pair<std::int64_t, std::string>> traces;
  bool has_traces = false;
  for (const auto& name : names) {
    HORO_TRY(auto input, TimelineInput::open(name));
    if (input->format() == InputFormat::horo) {
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
  // A job's trace may consist of several files; they are read in order of their first events.
  std::stable_sort(traces.begin(), traces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [begins, name] : traces) {
    HORO_TRY(const auto input, TimelineInput::open(name));
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
                     OperationSink& warnings, const std::function<bool(std::string_view)>& write) {
  HORO_TRY(const auto files, open_for_export(paths, warnings));
  const auto start = first_record_ns(files);
  const auto look_up = [&files](int rank, std::uint16_t set,
                                std::uint32_t id) -> std::optional<NameSlot> {
    for (const auto& file : files) {
      const auto* slot = file->rank() == rank ? file->name_of(set, id) : nullptr;
      if (slot != nullptr) return *slot;
    }
    return std::nullopt;
  };
  ChromeWriter writer({.start_wall_ns = start, .show_ranks = true}, look_up);
  int why = 0;
  const auto put = [&](const std::string& text) {
    if (why == 0 && !write(text)) why = errno != 0 ? errno : EIO;
  };
  put("[\n" + writer.head());
  merge_by_time(files, [&](RankFile& file, const Record& record) {
    const auto now = file.wall_ns(record.ticks);
    const double seconds = static_cast<double>(now - start) / 1e9;
    const bool wanted = selection.rank < 0 || selection.rank == file.rank();
    if (why != 0 || !wanted || seconds < selection.from || seconds > selection.to) return;
    writer.take(file.rank(), record, now, file.ns_per_tick());
    if (const auto events = writer.events(); !events.empty()) put(fmt::format(",\n{}", events));
    writer.clear();
  });
  put("\n]\n");
  warn_missing(files, warnings);
  return why == 0 ? Status{} : fail_errno(why, "standard output");
}

}  // namespace horo::timeline
