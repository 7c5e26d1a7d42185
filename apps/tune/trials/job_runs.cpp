// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/job_runs.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/common/tools.hpp"
#include "apps/tune/record/read_tune_log.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/mpi_knobs.hpp"
#include "base/text/printable.hpp"
#include "launcher/process/spawn.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kEraseLine = "\r\033[K";

void put_error(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

std::size_t terminal_width() {
  constexpr std::size_t kUsualColumns = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

/// Reads the log again whenever it has grown.
class GrowingLog {
 public:
  explicit GrowingLog(std::string path) : path_(std::move(path)) {}

  const std::optional<TuneRecord>& read() {
    std::error_code error;
    const auto size = std::filesystem::file_size(path_, error);
    if (error || size == size_) return record_;
    size_ = size;
    // Until its first line is whole, the log is no log.
    if (auto record = read_tune_log(path_)) record_ = std::move(*record);
    return record_;
  }

 private:
  std::string path_;
  std::uintmax_t size_ = 0;
  std::optional<TuneRecord> record_;
};

}  // namespace

Result<ScratchFolder> ScratchFolder::make() {
  const char* parent = std::getenv("TMPDIR");
  return make(parent == nullptr || *parent == '\0' ? "/tmp" : parent);
}

Result<ScratchFolder> ScratchFolder::make(const std::string& parent) {
  auto path = fmt::format("{}/horo-tune-XXXXXX", parent);
  if (mkdtemp(path.data()) == nullptr) return fail_errno(errno, path);
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

TuneProgress::TuneProgress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void TuneProgress::erase() {
  if (std::exchange(shown_, false)) put_error(kEraseLine);
}

void TuneProgress::now(std::string_view text) {
  if (!terminal_) return;
  auto line = "horo tune: " + printable(text);
  // A line that wraps cannot be rewritten in place.
  const auto width = terminal_width();
  if (line.size() >= width) line.resize(width - 1);
  put_error(std::string(kEraseLine) + line);
  shown_ = true;
}

void TuneProgress::done(std::string_view text) {
  erase();
  put_error(fmt::format("horo tune: {}\n", printable_lines(text)));
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "any time";
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string time_left_text(std::optional<double> left, double passed) {
  if (!left || !std::isfinite(*left)) return {};
  return fmt::format("at most {} left, ", duration_text(std::max(0.0, *left - passed)));
}

launcher::Command job_command(const TuneRequest& request, const std::string& tool,
                              const SettingWords& setting, const std::vector<std::string>& extra) {
  launcher::Command command{.arguments = {tool}, .environment = launcher::own_environment()};
  auto& words = command.arguments;
  words.insert(words.end(), request.run_words.begin(), request.run_words.end());
  auto given = setting;
  if (!given.mpi_args.empty()) {
    const auto own = request.job.settings.get(knobs::kMpiArgs);
    if (!own.empty()) given.mpi_args = own + " " + given.mpi_args;
  }
  const auto flags = given.flag_words();
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), extra.begin(), extra.end());
  if (!request.job.options.command.empty()) {
    words.emplace_back("--");
    const auto& own = request.job.options.command;
    words.insert(words.end(), own.begin(), own.end());
  }
  std::erase_if(command.environment, [&](const auto& variable) {
    return std::find(setting.unset.begin(), setting.unset.end(), variable.first) !=
           setting.unset.end();
  });
  command.environment.insert(command.environment.end(), setting.variables.begin(),
                             setting.variables.end());
  // `horo run` then stops its ranks, which SIGKILL would not let it do.
  command.parent_death_signal = SIGTERM;
  return command;
}

std::string JobRun::describe_failure() const {
  if (end.timed_out) return fmt::format("stopped after {}", duration_text(end.seconds));
  if (end.status.signalled())
    return fmt::format("ended by signal {} (SIG{})", end.status.signal(),
                       sigabbrev_np(end.status.signal()));
  return fmt::format("exit code {} after {}", end.status.code(), duration_text(end.seconds));
}

Result<JobRuns> JobRuns::make(const TuneRequest& request) {
  HORO_TRY(auto tool, find_tool("run"));
  HORO_TRY(auto folder, ScratchFolder::make());
  HORO_TRY(auto signals, UserSignals::block());
  return JobRuns(request, std::move(tool), std::move(folder), std::move(signals));
}

JobRuns::JobRuns(const TuneRequest& request, std::string tool, ScratchFolder folder,
                 UserSignals signals)
    : request_(request),
      tool_(std::move(tool)),
      folder_(std::move(folder)),
      signals_(std::move(signals)),
      log_(request.job.settings.get(knobs::kAutotuneLogFile)) {
  if (log_.empty()) log_ = folder_.path() + "/tuning.csv";
  if (!request.job.settings.get(knobs::kVerbose)) output_ = folder_.path() + "/output";
}

Result<JobRun> JobRuns::run(const SettingWords& setting, const std::vector<std::string>& extra,
                            double limit_seconds,
                            const std::function<bool(const TuneRecord*, double)>& is_done) {
  std::error_code error;
  std::filesystem::remove(log_, error);
  GrowingLog log(log_);
  auto flags = extra;
  flags.push_back(fmt::format("--autotune-log-file={}", log_));
  // A search that begins with an earlier job's result would try little else.
  const bool has_memory = !request_.job.settings.get(knobs::kAutotuneMemory).empty() ||
                          std::any_of(extra.begin(), extra.end(), [](const std::string& flag) {
                            return flag.starts_with("--autotune-memory=");
                          });
  if (!has_memory) flags.emplace_back("--autotune-memory=off");
  // One search is wanted, and a watch would only begin others.
  if (!request_.job.settings.is_set(knobs::kAutotuneWatchTime.text.key))
    flags.emplace_back("--autotune-watch-time=0");
  const TrialProcess process{.command = job_command(request_, tool_, setting, flags),
                             .output = output_,
                             .limit_seconds = limit_seconds,
                             .is_done = [&](double seconds) {
                               const auto& record = log.read();
                               return is_done(record ? &*record : nullptr, seconds);
                             }};
  HORO_TRY(const auto end, run_trial_process(process, signals_));
  return JobRun{.end = end, .log = log.read()};
}

}  // namespace horo::apps
