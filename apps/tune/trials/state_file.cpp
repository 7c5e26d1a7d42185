// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/state_file.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/json.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kStateFormatKey = "horo_tune";
constexpr int kStateFormat = 1;

constexpr std::string_view kObjectives[] = {"undecided", "throughput", "wall_time"};
constexpr std::string_view kEndings[] = {"measured", "failed", "timed_out", "interrupted"};

using autotune::SearchEnding;
constexpr SearchEnding kSearchEndings[] = {
    SearchEnding::searching,       SearchEnding::nothing_to_tune, SearchEnding::budget_too_short,
    SearchEnding::default_is_best, SearchEnding::default_stays,   SearchEnding::challenger_won};

void put_setting(JsonWriter& json, const autotune::Setting& setting) {
  json.begin_array();
  for (const auto& value : setting) json.value(autotune::to_text(value));
  json.end_array();
}

void put_trials(JsonWriter& json, const std::vector<DoneTrial>& trials) {
  json.begin_array();
  for (const auto& trial : trials) {
    const auto& result = trial.result;
    json.begin_object().key("setting");
    put_setting(json, trial.setting);
    json.key("stage").value(trial.stage);
    json.key("ending").value(kEndings[static_cast<std::size_t>(result.ending)]);
    json.key("score").value(result.score).key("standard_error").value(result.standard_error);
    json.key("steps").value(static_cast<std::int64_t>(result.steps));
    json.key("seconds").value(result.seconds).key("failure").value(result.failure).end_object();
  }
  json.end_array();
}

void put_search(JsonWriter& json, const autotune::SearchState& search) {
  json.begin_object().key("measurements").begin_array();
  for (const auto& one : search.measurements) {
    json.begin_object().key("setting");
    put_setting(json, one.setting);
    json.key("score").value(one.score).key("standard_error").value(one.standard_error);
    json.end_object();
  }
  json.end_array().key("challenger");
  if (search.challenger) {
    put_setting(json, *search.challenger);
  } else {
    json.null();
  }
  json.key("turns").begin_array();
  for (const double turn : search.turns) json.value(turn);
  json.end_array().key("ending").value(autotune::name(search.ending)).end_object();
}

/// Names and ranges of the dimensions. Two searches are the same where these texts are.
std::vector<std::string> space_texts(const TrialSpace& space) {
  struct RangeText {
    std::string operator()(const autotune::IntegerRange& range) const {
      return fmt::format("{} to {} by {} {}", range.least, range.most, range.step,
                         static_cast<int>(range.scale));
    }

    std::string operator()(const autotune::RealRange& range) const {
      return fmt::format("{} to {} {}", range.least, range.most, static_cast<int>(range.scale));
    }

    std::string operator()(const autotune::Categories& range) const {
      return fmt::format("{}", fmt::join(range.names, "|"));
    }
  };

  std::vector<std::string> texts;
  for (const auto& dimension : space.space().dimensions()) {
    texts.push_back(fmt::format("{}: {}, default {}", dimension.name,
                                std::visit(RangeText{}, dimension.range),
                                autotune::to_text(dimension.fallback)));
  }
  return texts;
}

void put_words(JsonWriter& json, const std::vector<std::string>& words) {
  json.begin_array();
  for (const auto& word : words) json.value(word);
  json.end_array();
}

class StateReader {
 public:
  explicit StateReader(const TrialSpace& space) : space_(space) {}

  Result<SavedSearch> read(const DocumentPart& root, const std::vector<std::string>& command) {
    const auto* format = root.find(kStateFormatKey);
    if (format == nullptr || format->text != std::to_string(kStateFormat)) {
      return root.wrong(fmt::format(
          "this is no state of a search of version {}; name another file with --resume, or remove "
          "this one to begin again",
          kStateFormat));
    }
    SavedSearch search;
    HORO_TRY(search.command, words(root, "command"));
    HORO_TRY(const auto known, words(root, "space"));
    if (search.command != command || known != space_texts(space_)) {
      return root.wrong(fmt::format(
          "the state is of a search for another {}; name another file with --resume, or remove "
          "this one to begin again",
          search.command != command ? "command" : "space"));
    }
    HORO_TRY(const auto objective, index(root, "objective", kObjectives));
    search.objective = static_cast<Objective>(objective);
    HORO_TRY_STATUS(read_trials(root, search.state.trials));
    HORO_TRY_STATUS(read_search(root, search.state.search));
    return search;
  }

 private:
  static Result<const DocumentPart*> member(const DocumentPart& part, std::string_view name,
                                            PartKind kind) {
    const auto* found = part.find(name);
    if (found == nullptr || found->kind != kind)
      return part.wrong(fmt::format("'{}' is missing or damaged", name));
    return found;
  }

  static Result<std::vector<std::string>> words(const DocumentPart& part, std::string_view name) {
    HORO_TRY(const auto* list, member(part, name, PartKind::list));
    std::vector<std::string> found;
    for (const auto& item : list->items) found.push_back(item.text);
    return found;
  }

  template <std::size_t count>
  static Result<std::size_t> index(const DocumentPart& part, std::string_view name,
                                   const std::string_view (&names)[count]) {
    HORO_TRY(const auto* text, member(part, name, PartKind::text));
    for (std::size_t i = 0; i < count; ++i) {
      if (text->text == names[i]) return i;
    }
    return text->wrong(fmt::format("'{}' is unknown here", text->text));
  }

  /// null is a score that is no number.
  static Result<double> number_of(const DocumentPart& part) {
    if (part.kind == PartKind::nothing) return std::numeric_limits<double>::quiet_NaN();
    double number = 0;
    const char* end = part.text.data() + part.text.size();
    const auto [stop, error] = std::from_chars(part.text.data(), end, number);
    if (part.kind != PartKind::text || error != std::errc{} || stop != end)
      return part.wrong(fmt::format("'{}' is no number", part.text));
    return number;
  }

  static Result<double> number(const DocumentPart& part, std::string_view name) {
    const auto* found = part.find(name);
    if (found == nullptr) return part.wrong(fmt::format("'{}' is missing", name));
    return number_of(*found);
  }

  Result<autotune::Setting> setting_of(const DocumentPart& part) const {
    const auto& dimensions = space_.space().dimensions();
    if (part.kind != PartKind::list || part.items.size() != dimensions.size())
      return part.wrong(fmt::format("{} values are wanted here", dimensions.size()));
    autotune::Setting setting;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (std::holds_alternative<autotune::Categories>(dimensions[i].range)) {
        setting.emplace_back(part.items[i].text);
        continue;
      }
      HORO_TRY(const double value, number_of(part.items[i]));
      if (std::holds_alternative<autotune::RealRange>(dimensions[i].range)) {
        setting.emplace_back(value);
      } else {
        constexpr double kMostWhole = 1e15;
        if (!(std::abs(value) <= kMostWhole)) return part.items[i].wrong("the number is too large");
        setting.emplace_back(static_cast<std::int64_t>(value));
      }
    }
    HORO_TRY_STATUS(space_.space().check(setting).context(part.place));
    return setting;
  }

  Status read_trials(const DocumentPart& root, std::vector<DoneTrial>& trials) const {
    HORO_TRY(const auto* list, member(root, "trials", PartKind::list));
    for (const auto& item : list->items) {
      DoneTrial trial;
      HORO_TRY(const auto* setting, member(item, "setting", PartKind::list));
      HORO_TRY(trial.setting, setting_of(*setting));
      HORO_TRY(const auto* stage, member(item, "stage", PartKind::text));
      trial.stage = stage->text;
      HORO_TRY(const auto ending, index(item, "ending", kEndings));
      trial.result.ending = static_cast<TrialEnding>(ending);
      HORO_TRY(trial.result.score, number(item, "score"));
      HORO_TRY(trial.result.standard_error, number(item, "standard_error"));
      HORO_TRY(const double steps, number(item, "steps"));
      constexpr double kMostSteps = 1e15;
      if (!(steps >= 0 && steps <= kMostSteps)) return item.wrong("'steps' is no number of steps");
      trial.result.steps = static_cast<std::size_t>(steps);
      HORO_TRY(trial.result.seconds, number(item, "seconds"));
      HORO_TRY(const auto* failure, member(item, "failure", PartKind::text));
      trial.result.failure = failure->text;
      trials.push_back(std::move(trial));
    }
    return {};
  }

  Status read_search(const DocumentPart& root, autotune::SearchState& search) const {
    HORO_TRY(const auto* part, member(root, "search", PartKind::map));
    HORO_TRY(const auto* list, member(*part, "measurements", PartKind::list));
    for (const auto& item : list->items) {
      autotune::Measurement one;
      HORO_TRY(const auto* setting, member(item, "setting", PartKind::list));
      HORO_TRY(one.setting, setting_of(*setting));
      HORO_TRY(one.score, number(item, "score"));
      HORO_TRY(one.standard_error, number(item, "standard_error"));
      search.measurements.push_back(std::move(one));
    }
    if (const auto* challenger = part->find("challenger");
        challenger != nullptr && challenger->kind != PartKind::nothing) {
      HORO_TRY(search.challenger, setting_of(*challenger));
    }
    HORO_TRY(const auto* turns, member(*part, "turns", PartKind::list));
    for (const auto& item : turns->items) {
      HORO_TRY(const double turn, number_of(item));
      search.turns.push_back(turn);
    }
    HORO_TRY(const auto* ending, member(*part, "ending", PartKind::text));
    for (const auto known : kSearchEndings) {
      if (ending->text == autotune::name(known)) {
        search.ending = known;
        return check_duel(*ending, search);
      }
    }
    return ending->wrong(fmt::format("'{}' is unknown here", ending->text));
  }

  /// A duel has a challenger.
  static Status check_duel(const DocumentPart& ending, const autotune::SearchState& search) {
    const bool was_duel = search.ending == SearchEnding::challenger_won ||
                          search.ending == SearchEnding::default_stays || !search.turns.empty();
    if (was_duel && !search.challenger)
      return ending.wrong("the search has turns, but no 'challenger'");
    return {};
  }

  const TrialSpace& space_;
};

}  // namespace

std::string state_text(const SavedSearch& search, const TrialSpace& space) {
  JsonWriter json;
  json.begin_object().key(kStateFormatKey).value(kStateFormat).key("command");
  put_words(json, search.command);
  json.key("space");
  put_words(json, space_texts(space));
  json.key("objective").value(kObjectives[static_cast<std::size_t>(search.objective)]);
  json.key("trials");
  put_trials(json, search.state.trials);
  json.key("search");
  put_search(json, search.state.search);
  json.end_object();
  return json.text() + "\n";
}

Result<SavedSearch> state_of_document(const DocumentPart& document, const TrialSpace& space,
                                      const std::vector<std::string>& command) {
  return StateReader(space).read(document, command);
}

}  // namespace horo::apps
