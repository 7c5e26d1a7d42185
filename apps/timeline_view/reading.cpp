// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/reading.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "apps/timeline_view/chrome_trace.hpp"
#include "apps/timeline_view/entries.hpp"
#include "apps/timeline_view/input.hpp"
#include "apps/timeline_view/rank_files.hpp"
#include "timeline/chrome_writer.hpp"

namespace horo::apps {

namespace {

using Files = std::vector<std::unique_ptr<RankFile>>;

void introduce(const Files& files, Sink& sink) {
  for (const auto& file : files) {
    sink.saw_rank(file->rank(), file->about().identity.host_text());
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

Status read_trace(Input& input, Sink& sink) {
  ChromeTrace trace(sink);
  auto outcome =
      timeline::read_chrome([&input](char* to, std::size_t room) { return input.read(to, room); },
                            [&trace](const timeline::ChromeEvent& event) { trace.take(event); });
  if (!outcome) return Failure(std::move(outcome).error().context(input.path()));
  trace.finish(outcome->rank);
  if (!outcome->missing.empty()) sink.warn(fmt::format("{}: {}", input.path(), outcome->missing));
  return {};
}

Status check_one_job(const Files& files) {
  for (const auto& file : files) {
    const auto& first = files.front()->about().identity;
    if (file->about().identity.job_text() == first.job_text()) continue;
    return fail(Errc::invalid_argument,
                "the files are of different jobs, '{}' and '{}'; look at them with --compare",
                first.job_text(), file->about().identity.job_text());
  }
  return {};
}

}  // namespace

Status read_all(const std::vector<std::string>& paths, Sink& sink) {
  HORO_TRY(const auto names, expand(paths));
  Files files;
  for (const auto& name : names) {
    HORO_TRY(auto input, Input::open(name));
    if (input->format() == Format::chrome) {
      HORO_TRY_STATUS(read_trace(*input, sink));
      continue;
    }
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    files.push_back(std::move(file));
  }
  if (files.empty()) return {};
  HORO_TRY_STATUS(check_one_job(files));
  introduce(files, sink);
  EntryMatcher matcher(sink, files.size());
  merge(files,
        [&matcher](RankFile& file, const timeline::Record& record) { matcher.take(file, record); });
  matcher.finish();
  tell_missing(files, sink);
  return {};
}

Status export_chrome(const std::vector<std::string>& paths, Sink& warnings,
                     const std::function<bool(std::string_view)>& write) {
  HORO_TRY(const auto names, expand(paths));
  Files files;
  for (const auto& name : names) {
    HORO_TRY(auto input, Input::open(name));
    if (input->format() == Format::chrome)
      return fail(Errc::unsupported, "'{}' is a trace for Chrome's viewer already", name);
    HORO_TRY(auto file, RankFile::open(std::move(input)));
    files.push_back(std::move(file));
  }
  HORO_TRY_STATUS(check_one_job(files));
  std::int64_t start = 0;
  for (const auto& file : files) {
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
  bool open = write("[\n" + writer.head());
  merge(files, [&](RankFile& file, const timeline::Record& record) {
    if (!open) return;
    writer.take(file.rank(), record, file.wall_ns(record.ticks));
    if (const auto events = writer.events(); !events.empty()) open = write(",\n" + events);
  });
  if (open) open = write("\n]\n");
  tell_missing(files, warnings);
  if (!open) return fail(Errc::io, "standard output was closed");
  return {};
}

}  // namespace horo::apps
