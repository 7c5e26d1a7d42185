// SPDX-License-Identifier: Apache-2.0
#include "apps/common/plan_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "apps/common/run_options.hpp"
#include "base/json.hpp"
#include "base/knobs/nearest.hpp"
#include "base/output_file.hpp"
#include "discovery/host_list.hpp"
#include "discovery/text_file.hpp"

namespace horo::apps {

namespace {

constexpr int kFormat = 1;
constexpr std::size_t kMostWords = 100'000;  // YAML aliases can make a small file large.
constexpr const char* kFormatKey = "horo_plan";

std::string ranges_of(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0 || value >= kMostRanks) return {};
  return value;
}

/// Reads "0-3,8". Nothing: the text is not such a list, or not ascending.
std::optional<std::vector<int>> parse_ranges(std::string_view text) {
  std::vector<int> ranks;
  for (const auto& entry : discovery::split_list(text)) {
    const auto dash = entry.text.find('-');
    const auto first = parse_number(entry.text.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_number(entry.text.substr(dash + 1));
    if (!first || !last || *last < *first || (!ranks.empty() && *first <= ranks.back())) return {};
    for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

class Reader {
 public:
  explicit Reader(std::string_view path) : path_(path) {}

  Result<SavedPlan> read(const YAML::Node& root) {
    if (!root.IsDefined() || !root.IsMap()) return wrong(root, "it must be an object");
    const std::map<std::string, std::function<Status(const YAML::Node&)>> keys{
        {kFormatKey, [&](const auto& node) { return read_format(node); }},
        {"command", [&](const auto& node) { return read_words(node); }},
        {"directory", [&](const auto& node) { return read_text(node, plan_.directory); }},
        {"bind_to", [&](const auto& node) { return read_text(node, plan_.bind_to); }},
        {"gpus", [&](const auto& node) { return read_text(node, plan_.gpus); }},
        {"hosts", [&](const auto& node) { return read_hosts(node); }}};
    std::map<std::string, bool> seen;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) return wrong(entry.first, "a key must be a word");
      const auto& name = entry.first.Scalar();
      const auto key = keys.find(name);
      if (key == keys.end()) return unknown(entry.first, name, keys);
      if (std::exchange(seen[name], true))
        return wrong(entry.first, fmt::format("key '{}' is given twice", name));
      HORO_TRY_STATUS(key->second(entry.second));
    }
    for (const auto& [name, read] : keys) {
      if (!seen[name]) return wrong(root, fmt::format("key '{}' is missing", name));
    }
    HORO_TRY_STATUS(check_ranks());
    return std::move(plan_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    // An empty document has no mark.
    const bool marked = node.IsDefined() && !node.Mark().is_null();
    const auto mark = marked ? node.Mark() : YAML::Mark();
    return fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
  }

  Failure wrong(const YAML::Node& node, std::string_view what) const {
    return fail(Errc::invalid_argument, "{}: {}", place(node), what);
  }

  template <typename Keys>
  Failure unknown(const YAML::Node& node, const std::string& name, const Keys& keys) const {
    std::vector<std::string_view> known;
    for (const auto& [key, read] : keys) known.push_back(key);
    return wrong(node, fmt::format("unknown key '{}'{}", name, did_you_mean(name, known)));
  }

  Status read_format(const YAML::Node& node) {
    if (node.IsScalar() && node.Scalar() == std::to_string(kFormat)) return {};
    return wrong(node, fmt::format("{} must be {}; write the plan again with --plan-out",
                                   kFormatKey, kFormat));
  }

  Status read_text(const YAML::Node& node, std::string& text) {
    if (!node.IsScalar() || node.Scalar().empty()) return wrong(node, "a text is wanted here");
    text = node.Scalar();
    return {};
  }

  Status read_words(const YAML::Node& node) {
    if (!node.IsSequence() || node.size() == 0 || node.size() > kMostWords)
      return wrong(node, "a list of the command's words is wanted here");
    for (const auto& word : node) {
      if (!word.IsScalar()) return wrong(word, "a word of the command must be a text");
      plan_.command.push_back(word.Scalar());
    }
    if (plan_.command.front().empty()) return wrong(node, "the command begins with an empty word");
    return {};
  }

  Status read_hosts(const YAML::Node& node) {
    if (!node.IsSequence() || node.size() == 0 || node.size() > discovery::kMaxHosts)
      return wrong(node, "a list of hosts is wanted here");
    for (const auto& entry : node) {
      HORO_TRY(auto host, read_host(entry));
      if (const auto [place, is_new] = host_lines_.emplace(host.name, entry.Mark().line); !is_new)
        return wrong(entry, fmt::format("host '{}' is listed twice", host.name));
      plan_.hosts.push_back(std::move(host));
    }
    return {};
  }

  Result<SavedHost> read_host(const YAML::Node& node) {
    constexpr std::string_view kShape = R"(a host must be {"name": ..., "ranks": "0-3,8"})";
    if (!node.IsMap() || node.size() != 2) return wrong(node, kShape);
    const auto name = node["name"];
    const auto ranks = node["ranks"];
    if (!name.IsDefined() || !name.IsScalar() || !ranks.IsDefined() || !ranks.IsScalar())
      return wrong(node, kShape);
    const auto& written = name.Scalar();
    const auto at = written.find('@');
    const auto user = at == std::string::npos ? std::string() : written.substr(0, at);
    const auto host = at == std::string::npos ? written : written.substr(at + 1);
    if (!discovery::is_host_name(host) ||
        (at != std::string::npos && !discovery::is_user_name(user)))
      return wrong(name, fmt::format("'{}' is not the name of a host", written));
    auto numbers = parse_ranges(ranks.Scalar());
    if (!numbers) {
      return wrong(ranks,
                   fmt::format("'{}' must be ascending ranks and ranges like 0-3,8, below {}",
                               ranks.Scalar(), kMostRanks));
    }
    count_ += numbers->size();
    if (count_ > kMostRanks) return wrong(ranks, fmt::format("more than {} ranks", kMostRanks));
    return SavedHost{.name = host, .ranks = std::move(*numbers), .user = user};
  }

  /// Every rank below the count must appear once.
  Status check_ranks() const {
    std::vector<const SavedHost*> owner(count_, nullptr);
    for (const auto& host : plan_.hosts) {
      for (const int rank : host.ranks) {
        const auto index = static_cast<std::size_t>(rank);
        if (index >= count_) {
          return fail(Errc::invalid_argument,
                      "{}: rank {} on host '{}' is past the last of {} ranks: a number is missing",
                      path_, rank, host.name, count_);
        }
        if (owner[index] != nullptr) {
          return fail(Errc::invalid_argument, "{}: rank {} is on host '{}' and on host '{}'", path_,
                      rank, owner[index]->name, host.name);
        }
        owner[index] = &host;
      }
    }
    return {};
  }

  std::string_view path_;
  SavedPlan plan_;
  std::map<std::string, int> host_lines_;
  std::size_t count_ = 0;
};

}  // namespace

std::string plan_file_text(const SavedPlan& plan) {
  JsonWriter json;
  json.begin_object().key(kFormatKey).value(kFormat).key("command").begin_array();
  for (const auto& word : plan.command) json.value(word);
  json.end_array().key("directory").value(plan.directory);
  json.key("bind_to").value(plan.bind_to).key("gpus").value(plan.gpus);
  json.key("hosts").begin_array();
  for (const auto& host : plan.hosts) {
    json.begin_object().key("name").value(
        host.user.empty() ? host.name : fmt::format("{}@{}", host.user, host.name));
    json.key("ranks").value(ranges_of(host.ranks)).end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

Result<SavedPlan> parse_plan_file(const std::string& text, std::string_view path) {
  try {
    return Reader(path).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return fail(Errc::invalid_argument, "{}:{}:{}: {}", path, error.mark.line + 1,
                error.mark.column + 1, error.msg);
  }
}

Result<SavedPlan> read_plan_file(const std::string& path) {
  auto text = discovery::read_text_file(path);
  if (!text) return Failure(std::move(text).error().context(fmt::format("plan file '{}'", path)));
  return parse_plan_file(*text, path);
}

Status write_plan_file(const std::string& path, const SavedPlan& plan) {
  HORO_TRY(auto opened, open_output_file("plan", path));
  const auto what = fmt::format("plan file '{}'", path);
  std::FILE* file = fdopen(opened.value(), "w");
  if (file == nullptr) return fail_errno(errno, what);
  opened.release();
  const auto text = plan_file_text(plan);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) return fail_errno(written ? errno : error, what);
  return {};
}

}  // namespace horo::apps
