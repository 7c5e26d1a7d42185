// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/describe.hpp"

#include <csignal>
#include <cstring>
#include <sys/wait.h>

#include "launcher/job/job_state.hpp"

namespace horo::launcher {

namespace {

std::string describe_end(const RankExit& exit) {
  if (!WIFSIGNALED(exit.wait_status))
    return fmt::format("exit code {}", WEXITSTATUS(exit.wait_status));
  const int number = WTERMSIG(exit.wait_status);
  const char* abbreviation = sigabbrev_np(number);
  const auto name = abbreviation == nullptr
                        ? fmt::format("signal {}", number)
                        : fmt::format("signal {} (SIG{})", number, abbreviation);
  return fmt::format("killed by {}{}{}", name,
                     exit.oom_killed ? " for want of memory (the kernel's OOM killer)" : "",
                     exit.core_dumped ? ", core dumped" : "");
}

}  // namespace

std::string describe(const RankExit& exit) {
  const auto text = describe_end(exit);
  return exit.gpu_faults.empty() ? text : fmt::format("{}; {}", text, exit.gpu_faults);
}

std::string describe_signal(int number) {
  const char* name = sigabbrev_np(number);
  return fmt::format("signal {} (SIG{})", number, name == nullptr ? "?" : name);
}

void write_exit(JsonWriter& json, const RankExit& exit) {
  json.key("exit_code").value(exit_code_of_status(exit.wait_status));
  json.key("signal");
  if (WIFSIGNALED(exit.wait_status)) {
    json.value(WTERMSIG(exit.wait_status));
  } else {
    json.null();
  }
  json.key("core_dumped").value(exit.core_dumped).key("oom_killed").value(exit.oom_killed);
  if (!exit.gpu_faults.empty()) json.key("gpu_faults").value(exit.gpu_faults);
  json.key("attached")
      .value(exit.attached)
      .key("seconds")
      .value(std::chrono::duration<double>(exit.lived).count());
}

std::string describe(Duration duration) {
  using std::chrono::duration_cast;
  const auto ms = duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 60'000) return fmt::format("{:.2f} s", static_cast<double>(ms) / 1000);
  const auto seconds = ms / 1000;
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

std::string describe(const std::vector<Rank>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1].value() == ranks[last].value() + 1) ++last;
    if (last - i >= 2) {
      runs.push_back(fmt::format("{}-{}", ranks[i], ranks[last]));
      i = last + 1;
    } else {
      runs.push_back(fmt::format("{}", ranks[i++]));
    }
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

}  // namespace horo::launcher
