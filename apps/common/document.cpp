// SPDX-License-Identifier: Apache-2.0
#include "apps/common/document.hpp"

#include <algorithm>
#include <set>

#include <yaml-cpp/yaml.h>

#include "discovery/text_file.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kMostParts = 100'000;  // YAML aliases can make a small file large.
constexpr int kMostLevels = 16;

std::string mark_text(std::string_view path, const YAML::Mark& mark) {
  // An empty document has no mark.
  const YAML::Mark known = mark.is_null() ? YAML::Mark() : mark;
  return fmt::format("{}:{}:{}", path, known.line + 1, known.column + 1);
}

class DocumentBuilder {
 public:
  explicit DocumentBuilder(std::string_view path) : path_(path) {}

  Result<DocumentPart> build(const YAML::Node& node, int level) {
    DocumentPart part;
    part.place = mark_text(path_, node.IsDefined() ? node.Mark() : YAML::Mark());
    if (++parts_ > kMostParts || level > kMostLevels)
      return part.wrong("the file has too many parts, or too many levels");
    if (!node.IsDefined() || node.IsNull()) return part;
    if (node.IsScalar()) {
      part.kind = PartKind::text;
      part.text = node.Scalar();
    } else if (node.IsSequence()) {
      part.kind = PartKind::list;
      for (const auto& item : node) {
        HORO_TRY(auto built, build(item, level + 1));
        part.items.push_back(std::move(built));
      }
    } else {
      part.kind = PartKind::map;
      HORO_TRY_STATUS(build_members(node, level, part));
    }
    return part;
  }

 private:
  Status build_members(const YAML::Node& node, int level, DocumentPart& part) {
    std::set<std::string> names;
    for (const auto& entry : node) {
      const auto place = mark_text(path_, entry.first.Mark());
      if (!entry.first.IsScalar())
        return fail(Errc::invalid_argument, "{}: a key must be a word", place);
      const auto& name = entry.first.Scalar();
      if (!names.insert(name).second)
        return fail(Errc::invalid_argument, "{}: key '{}' is given twice", place, name);
      HORO_TRY(auto built, build(entry.second, level + 1));
      if (built.kind == PartKind::nothing) built.place = place;
      part.members.push_back({name, std::move(built)});
    }
    return {};
  }

  std::string_view path_;
  std::size_t parts_ = 0;
};

}  // namespace

const DocumentPart* DocumentPart::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [name](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &found->part;
}

Failure DocumentPart::wrong(std::string_view what) const {
  return fail(Errc::invalid_argument, "{}: {}", place, what);
}

Result<DocumentPart> parse_document(const std::string& text, std::string_view path) {
  try {
    return DocumentBuilder(path).build(YAML::Load(text), 1);
  } catch (const YAML::Exception& error) {
    return fail(Errc::invalid_argument, "{}: {}", mark_text(path, error.mark), error.msg);
  }
}

Result<DocumentPart> read_document(const std::string& path) {
  auto text = discovery::read_text_file(path);
  if (!text) return Failure(std::move(text).error().context(fmt::format("'{}'", path)));
  return parse_document(*text, path);
}

}  // namespace horo::apps
