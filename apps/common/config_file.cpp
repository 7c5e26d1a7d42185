// SPDX-License-Identifier: Apache-2.0
#include "apps/common/config_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/knobs/knob_table.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kMostBytes = 1U << 20U;  // Far more than a file that sets every knob.
constexpr int kMostDepth = 8;                  // Keys have up to five words.
constexpr std::size_t kMostKeys = 10'000;      // YAML aliases can make a small file large.

std::string place_of(std::string_view path, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", path, mark.line + 1, mark.column + 1);
}

/// Collects the values of nested maps.
class Flattener {
 public:
  explicit Flattener(std::string_view path) : path_(path) {}

  Status add(const YAML::Node& map, const std::string& prefix, int depth) {
    for (const auto& entry : map) {
      const auto place = place_of(path_, entry.first.Mark());
      if (!entry.first.IsScalar())
        return fail(Errc::invalid_argument, "{}: a key must be a word", place);
      const auto name = prefix + entry.first.Scalar();
      if (!seen_.insert(name).second) {
        return fail(Errc::invalid_argument, "{}: key '{}' is given twice", place, name);
      }
      if (seen_.size() > kMostKeys) {
        return fail(Errc::invalid_argument, "{}: more than {} keys", place, kMostKeys);
      }
      const auto& value = entry.second;
      if (value.IsNull()) continue;
      if (value.IsMap() && depth < kMostDepth) {
        HORO_TRY_STATUS(add(value, name + ".", depth + 1));
      } else if (match_config(name).index < 0) {
        // An error about a key shows the key's place, one about a value the value's.
        given_.push_back({name, value.IsScalar() ? value.Scalar() : "", place});
      } else if (value.IsScalar()) {
        given_.push_back({name, value.Scalar(), place_of(path_, value.Mark())});
      } else {
        return fail(Errc::invalid_argument, "{}: key '{}' must have a single value",
                    place_of(path_, value.Mark()), name);
      }
    }
    return {};
  }

  std::vector<Given> take() && { return std::move(given_); }

 private:
  std::string_view path_;
  std::set<std::string> seen_;
  std::vector<Given> given_;
};

Result<std::string> read_whole(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) return fail_errno(errno, fmt::format("config file '{}'", path));
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const auto count = std::fread(block.data(), 1, block.size(), file.get());
    text.append(block.data(), count);
    if (text.size() > kMostBytes) {
      return fail(Errc::invalid_argument, "config file '{}' is longer than {} bytes", path,
                  kMostBytes);
    }
    if (count < block.size()) break;
  }
  if (std::ferror(file.get()) != 0) return fail_errno(errno, fmt::format("config file '{}'", path));
  return text;
}

/// Notes where each document begins.
class DocumentStart : public YAML::EventHandler {
 public:
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}

  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}

  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}

  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}

  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}

  void OnMapEnd() override {}

 private:
  YAML::Mark mark_;
};

/// Where what follows the first document begins. YAML::LoadAll is no way to find it: it never ends
/// for text that belongs to no document, such as "{a: 1}, b".
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return std::nullopt;
  return start.mark();
}

}  // namespace

Result<std::vector<Given>> parse_config(const std::string& text, std::string_view path) {
  try {
    const auto root = YAML::Load(text);
    if (const auto second = second_document(text)) {
      return fail(Errc::invalid_argument,
                  "{}: text follows the end of the first document, as after '---'; a config file "
                  "has one document",
                  place_of(path, *second));
    }
    if (root.IsNull() || !root.IsDefined()) return std::vector<Given>{};
    if (!root.IsMap()) {
      return fail(Errc::invalid_argument, "{}: must hold sections with keys and values",
                  place_of(path, root.Mark()));
    }
    Flattener flattener(path);
    HORO_TRY_STATUS(flattener.add(root, "", 1));
    return std::move(flattener).take();
  } catch (const YAML::Exception& error) {
    return fail(Errc::invalid_argument, "{}: {}", place_of(path, error.mark), error.msg);
  }
}

Result<std::vector<Given>> read_config_file(const std::string& path) {
  HORO_TRY(const auto text, read_whole(path));
  return parse_config(text, path);
}

}  // namespace horo::apps
