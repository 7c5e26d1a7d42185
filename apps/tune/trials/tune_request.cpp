// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/tune_request.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "apps/tune/trials/online_state.hpp"
#include "base/knobs/knobs.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kMostTrials = 100'000;

Result<std::size_t> read_count(const cli::Arguments& arguments, std::string_view flag,
                               std::size_t least, std::size_t fallback) {
  const auto* option = arguments.find(flag);
  if (option == nullptr) return fallback;
  std::size_t number = 0;
  const char* end = option->value.data() + option->value.size();
  const auto [stop, error] = std::from_chars(option->value.data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > kMostTrials) {
    return fail(Errc::invalid_argument, "option '--{}': '{}' must be a whole number from {} to {}",
                flag, option->value, least, kMostTrials);
  }
  return number;
}

/// A word that `horo run` reads in the same way.
std::string word_of(const cli::Option& option) {
  const bool is_switch = option.flag->value.empty() && !option.flag->negatable;
  return is_switch ? fmt::format("--{}", option.name)
                   : fmt::format("--{}={}", option.name, option.value);
}

std::string text_of(const cli::Arguments& arguments, std::string_view flag) {
  const auto* option = arguments.find(flag);
  return option == nullptr ? std::string() : option->value;
}

/// The options that `horo run` has too.
std::vector<std::string> words_for_run(const cli::Arguments& arguments) {
  constexpr std::string_view kOwn[] = {"json", "dry-run", "help", "version"};
  const auto& run = cli::find_command("run")->flags;
  std::vector<std::string> words;
  for (const auto& option : arguments.options) {
    const auto& name = option.flag->name;
    const bool known = std::any_of(run.begin(), run.end(),
                                   [&](const cli::Flag& flag) { return flag.name == name; });
    if (known && std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn))
      words.push_back(word_of(option));
  }
  return words;
}

Result<RunInvocation> read_job(std::vector<std::string> words,
                               const std::vector<std::string>& command,
                               const std::function<const char*(const char*)>& lookup) {
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  std::vector<const char*> pointers;
  for (const auto& word : words) pointers.push_back(word.c_str());
  return parse_run(pointers, lookup);
}

Status check_modes(const cli::Arguments& arguments, const TuneRequest& request) {
  if (arguments.find("online") != nullptr && arguments.find("restart") != nullptr)
    return fail(Errc::invalid_argument, "--online and --restart exclude each other");
  if (request.mode != TrialMode::online) return {};
  for (const std::string_view flag : {"space", "wall-time", "trials"}) {
    if (arguments.find(flag) != nullptr)
      return fail(Errc::invalid_argument, "--{} needs restarts, which --online excludes", flag);
  }
  return {};
}

TrialMode mode_of(const cli::Arguments& arguments) {
  if (arguments.find("online") != nullptr) return TrialMode::online;
  // An option that only restarts can follow asks for them.
  for (const std::string_view flag : {"restart", "space", "wall-time", "trials"}) {
    if (arguments.find(flag) != nullptr) return TrialMode::restart;
  }
  // A search by restarts goes on by restarts.
  const auto saved = text_of(arguments, "resume");
  std::error_code error;
  if (saved.empty() || !std::filesystem::exists(saved, error)) return TrialMode::automatic;
  const auto document = read_document(saved);
  return document && is_online_search(*document) ? TrialMode::automatic : TrialMode::restart;
}

/// The runtime has one folder for what it keeps.
Status check_memory(const TuneRequest& request) {
  if (request.mode == TrialMode::restart || request.resume.empty() ||
      request.job.settings.get(knobs::kAutotuneMemory).empty())
    return {};
  return fail(Errc::invalid_argument,
              "--resume and --autotune-memory exclude each other in a search online: the file of "
              "--resume has what the runtime keeps; leave one of them out");
}

}  // namespace

Result<double> parse_budget(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  const auto* found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [unit](const auto& one) { return one.first == unit; });
  if (error != std::errc{} || found == std::end(kUnits) || !(number > 0)) {
    return fail(Errc::invalid_argument,
                "option '--budget': '{}' must be a time above 0, like 90s, 5m or 1.5h", text);
  }
  return number * found->second;
}

Result<TuneRequest> read_tune_request(const cli::Arguments& arguments,
                                      const std::function<const char*(const char*)>& lookup) {
  TuneRequest request{.json = arguments.find("json") != nullptr,
                      .dry_run = arguments.find("dry-run") != nullptr,
                      .wall_time = arguments.find("wall-time") != nullptr,
                      .whole_runs = arguments.find("whole-runs") != nullptr,
                      .mode = mode_of(arguments),
                      .html = text_of(arguments, "html"),
                      .config_out = text_of(arguments, "config-out"),
                      .resume = text_of(arguments, "resume"),
                      .space = text_of(arguments, "space"),
                      .run_words = words_for_run(arguments),
                      .job = {}};
  HORO_TRY_STATUS(check_modes(arguments, request));
  if (const auto* budget = arguments.find("budget"); budget != nullptr) {
    HORO_TRY(request.budget_seconds, parse_budget(budget->value));
  }
  HORO_TRY(request.trials, read_count(arguments, "trials", 2, request.trials));
  HORO_TRY(request.failures, read_count(arguments, "failures", 1, request.failures));
  HORO_TRY(request.job, read_job(request.run_words, arguments.rest, lookup));
  HORO_TRY_STATUS(check_memory(request));
  return request;
}

Result<Settings> settings_of_tune(const cli::Arguments& arguments,
                                  const std::function<const char*(const char*)>& lookup) {
  // `horo run` needs a command.
  HORO_TRY(auto job, read_job(words_for_run(arguments), {"none"}, lookup));
  return std::move(job.settings);
}

}  // namespace horo::apps
