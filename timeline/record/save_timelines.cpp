// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/save_timelines.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "timeline/record/ticks.hpp"

namespace horo::timeline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kJobsKept = 8;
constexpr std::chrono::minutes kBeingWritten(5);  // An agent may still write to a younger folder.

/// The job's id as a file name.
std::string folder_name(std::string_view job) {
  std::string name;
  for (const char c : job) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    name += plain ? c : '_';
  }
  return name.empty() ? "job" : name;
}

/// Makes a folder that only this user can open. Fails where another user made it.
Status make_private(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, path);

  struct stat status {};

  if (lstat(path.c_str(), &status) != 0) return fail_errno(errno, path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077U) != 0) {
    return fail(Errc::permission_denied,
                "{} is not a directory that only this user can enter; give --timeline-directory",
                path);
  }
  return {};
}

/// Removes all but the newest of the jobs' folders in `parent`.
void forget_old_jobs(const std::string& parent) {
  std::vector<std::pair<fs::file_time_type, fs::path>> jobs;
  std::error_code error;
  const auto old = fs::file_time_type::clock::now() - kBeingWritten;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    const auto written = at->last_write_time(unreadable);
    if (at->is_directory(unreadable) && !at->is_symlink(unreadable) && !unreadable)
      jobs.emplace_back(written, at->path());
  }
  if (jobs.size() <= kJobsKept) return;
  std::sort(jobs.begin(), jobs.end(), std::greater<>());
  for (std::size_t i = kJobsKept; i < jobs.size(); ++i) {
    if (jobs[i].first < old) fs::remove_all(jobs[i].second, error);
  }
}

}  // namespace

Result<std::string> job_directory(std::string_view job) {
  const auto parent = fmt::format("/tmp/horo-timeline-{}", geteuid());
  HORO_TRY_STATUS(make_private(parent));
  auto path = fmt::format("{}/{}", parent, folder_name(job));
  HORO_TRY_STATUS(make_private(path));
  forget_old_jobs(parent);
  return path;
}

namespace {

Status write_file(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, path);
  while (!bytes.empty()) {
    const auto written = write(fd.value(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_errno(written < 0 ? errno : ENOSPC, path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// The folder that was asked for, or else the job's own.
Result<std::string> open_directory(const std::string& asked_for, const RankIdentity& identity) {
  if (asked_for.empty()) return job_directory(identity.job_text());
  std::error_code error;
  fs::create_directories(asked_for, error);
  if (error) return fail_errno(error.value(), asked_for);
  return asked_for;
}

/// Removes records that are older than wanted. Age is counted from the rank's last record, not from
/// now, because the rank may have hung for a long time.
void leave_out_old(FileContent& content, Duration keep) {
  auto& records = content.records;
  if (keep == Duration::zero() || records.empty()) return;
  const TickClock clock(content.about.first, content.about.last);
  const auto last =
      std::max_element(records.begin(), records.end(),
                       [](const Record& a, const Record& b) { return a.ticks < b.ticks; });
  const auto from = clock.wall_ns(last->ticks) - keep.count();
  std::erase_if(records, [&](const Record& record) { return clock.wall_ns(record.ticks) < from; });
}

/// Submissions and other records lie in separate parts of a ring, which reach back to different
/// times. The remainder of an operation without its submission would look as if no rank had waited.
void leave_out_parts(std::vector<Record>& records, std::uint64_t complete_from) {
  std::erase_if(records, [complete_from](const Record& record) {
    switch (record.kind) {
      case RecordKind::submit:
      case RecordKind::begin:
      case RecordKind::members:
      case RecordKind::copies:
      case RecordKind::end:
      case RecordKind::wait:
      case RecordKind::device:
      case RecordKind::no_device_times:
        return record.ticks < complete_from;
      default:
        return false;
    }
  });
}

void note(Saved& saved, const Error& problem) {
  if (saved.problem.empty()) saved.problem = problem.message;
}

}  // namespace

Result<FileContent> snapshot(int fd, int index) {
  HORO_TRY(auto reader, RegionReader::open(fd, index));
  FileContent content;
  if (auto overwritten = reader.drain(content.records); !overwritten)
    return Failure(std::move(overwritten).error());
  leave_out_parts(content.records, reader.complete_from());
  content.names = reader.names();
  content.about = {.identity = reader.about().identity,
                   .first = reader.about().anchor,
                   .last = take_anchor(),
                   .dropped = reader.dropped()};
  leave_out_old(content, reader.about().keep);
  return content;
}

Result<Saved> save_regions(int fd, int regions, const std::string& directory) {
  Saved saved;
  for (int i = 0; i < regions; ++i) {
    auto content = snapshot(fd, i);
    if (!content) {
      if (content.error().code != Errc::not_found) note(saved, content.error());
      continue;
    }
    if (content->records.empty()) continue;
    if (saved.directory.empty()) {
      HORO_TRY(saved.directory, open_directory(directory, content->about.identity));
    }
    const auto path =
        fmt::format("{}/rank.{}.timeline", saved.directory, content->about.identity.rank);
    if (const auto written = write_file(path, encode_file(std::move(*content))); !written) {
      note(saved, written.error());
    } else {
      ++saved.ranks;
    }
  }
  return saved;
}

}  // namespace horo::timeline
