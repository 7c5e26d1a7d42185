// SPDX-License-Identifier: Apache-2.0
// A file in YAML, or in JSON, which is YAML too, as a plain value. Each part knows its place, so
// that whoever reads the value can name it in an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace horo::apps {

enum class PartKind : std::uint8_t { nothing, text, list, map };

struct DocumentMember;

struct DocumentPart {
  PartKind kind = PartKind::nothing;
  std::string text;  ///< Numbers and switches too, as they are written.
  std::vector<DocumentPart> items;
  std::vector<DocumentMember> members;  ///< In the order of the file.
  std::string place;                    ///< "space.yaml:3:12"

  /// The member of this name, or null.
  const DocumentPart* find(std::string_view name) const;

  /// A failure that names the place.
  Failure wrong(std::string_view what) const;
};

struct DocumentMember {
  std::string name;
  DocumentPart part;
};

/// `path` is used in messages only. Fails: invalid_argument (no YAML, a key twice, or more
/// than a hundred thousand parts).
Result<DocumentPart> parse_document(const std::string& text, std::string_view path);

/// Blocks: for the file. Fails: as parse_document; not_found, permission_denied, io.
Result<DocumentPart> read_document(const std::string& path);

}  // namespace horo::apps
