// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "apps/docs/comment.hpp"
#include "apps/docs/header_page.hpp"

namespace horo::apps {

namespace {

using Lines = std::vector<std::string_view>;

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// Position at which a function's signature ends: at its body, its initialisers or its semicolon.
std::size_t end_of_signature(std::string_view code) {
  int depth = 0;
  bool closed = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '(') ++depth;
    if (code[i] == ')') closed = --depth == 0;
    if (depth > 0) continue;
    if (code[i] == '{' || code[i] == ';') return i;
    if (closed && code.substr(i).starts_with(": ")) return i;
  }
  return code.size();
}

/// One declaration in a file or a class.
struct Declaration {
  std::string code;       ///< The whole declaration with its body, moved to the left margin.
  std::string signature;  ///< The text before the body.
  std::size_t next = 0;   ///< The line behind it.
};

Declaration read_declaration(const Lines& lines, std::size_t at) {
  Declaration found{.code = {}, .signature = {}, .next = at};
  const auto indent = indent_of(lines[at]);
  // The declaration's lines up to one that opens a body or ends it. A body, as clang-format lays it
  // out, ends at the closing brace with the indentation of the first line.
  bool body = false;
  for (bool open = true; open && found.next < lines.size(); ++found.next) {
    const auto line = lines[found.next];
    found.code += fmt::format("{}\n", line.substr(std::min(indent, line.size())));
    if (body) {
      open = indent_of(line) != indent || !trimmed(line).starts_with('}');
    } else {
      body = line.ends_with('{');
      open = !line.ends_with(';') && !line.ends_with('}');
    }
  }
  found.signature = trimmed(std::string_view(found.code).substr(0, end_of_signature(found.code)));
  return found;
}

bool is_class(std::string_view signature) {
  const auto last = signature.substr(signature.rfind('\n') + 1);
  return last.starts_with("class ");
}

bool is_function(const Declaration& declaration) {
  const std::string_view text = declaration.signature;
  return text.find('(') != std::string_view::npos &&
         text.find("concept ") == std::string_view::npos;
}

/// Whether it is one of the members that every class has: default members, copies, moves and the
/// destructor.
bool is_special(const Declaration& declaration, std::string_view owner) {
  const std::string_view text = declaration.signature;
  return text.starts_with('~') || text.starts_with("friend ") || text.ends_with("= default") ||
         text.ends_with("= delete") ||
         text.find(fmt::format("({}&& ", owner)) != std::string_view::npos;
}

/// Whether it only repeats a name that is declared in another place.
bool is_mention(const Declaration& declaration) {
  return declaration.code.starts_with("friend ") ||
         (is_class(declaration.signature) && declaration.code.ends_with(";\n") &&
          declaration.code.find('{') == std::string::npos);
}

/// The name before the parameters, or of the type.
std::string declared_name(std::string_view signature) {
  if (const auto concept_at = signature.find("concept "); concept_at != std::string_view::npos) {
    signature = signature.substr(concept_at + 8);
    return std::string(signature.substr(0, signature.find(' ')));
  }
  auto head = signature.substr(0, signature.find('('));
  if (head.size() == signature.size()) head = signature.substr(0, signature.find(" :"));
  return std::string(head.substr(head.find_last_of(" *&\n") + 1));
}

std::string fenced(std::string_view code) {
  return fmt::format("```cpp\n{}\n```\n", trimmed(code));
}

class CppPage {
 public:
  Status add(const Header& header) {
    lines_ = lines_of(header.text);
    std::size_t at = 0;
    while (at < lines_.size() && !lines_[at].starts_with("///")) ++at;
    if (at == lines_.size())
      return fail(Errc::invalid_argument, "{} does not say what it is for", header.name);
    const auto words = read_comment(lines_, at);
    text_ += fmt::format("\n## {}\n\n{}", header.name, markdown(words.text));
    HORO_TRY_STATUS(add_scope({.at = words.next, .end = lines_.size()}));
    return {};
  }

  std::string text() && { return std::move(text_); }

 private:
  struct Scope {
    std::size_t at;
    std::size_t end;
    std::string owner = {};  ///< The class; empty for the file.
    bool is_public = true;
  };

  Status add_scope(Scope scope) {
    std::string words;
    while (scope.at < scope.end) {
      const auto line = lines_[scope.at];
      const auto text = trimmed(line);
      if (text.ends_with(':') &&
          (text == "public:" || text == "private:" || text == "protected:")) {
        scope.is_public = text == "public:";
        ++scope.at;
      } else if (text.starts_with("///")) {
        auto comment = read_comment(lines_, scope.at);
        words = std::move(comment.text);
        scope.at = comment.next;
      } else if (text.empty() || text.starts_with('#') || text.starts_with('}') ||
                 text.starts_with("//") || text.find("namespace ") != std::string_view::npos) {
        words.clear();
        ++scope.at;
      } else {
        const auto begin = scope.at;
        const auto found = read_declaration(lines_, begin);
        scope.at = found.next;
        if (scope.is_public) {
          HORO_TRY_STATUS(add(found, begin, words, scope));
        }
        words.clear();
      }
    }
    return {};
  }

  Status add(const Declaration& found, std::size_t begin, const std::string& words,
             const Scope& scope) {
    if (is_function(found) ? is_special(found, scope.owner) : is_mention(found)) return {};
    const auto name = scope.owner.empty()
                          ? declared_name(found.signature)
                          : fmt::format("{}::{}", scope.owner, declared_name(found.signature));
    if (words.empty()) return fail(Errc::invalid_argument, "{} has no comment", name);
    if (is_class(found.signature)) return add_class(found, begin, words, name);
    if (!is_function(found)) {
      text_ += fmt::format("\n### {}\n\n{}\n{}", name, fenced(found.code), markdown(words));
      return {};
    }
    if (found.signature.find("noexcept") == std::string_view::npos && !says(words, "Fails"))
      return fail(Errc::invalid_argument,
                  "the comment of {} lacks 'Fails:', and it is not noexcept", name);
    text_ += fmt::format("\n{} {}\n\n{}\n{}", scope.owner.empty() ? "###" : "####", name,
                         fenced(found.signature + ";"), markdown(words));
    return {};
  }

  Status add_class(const Declaration& found, std::size_t begin, const std::string& words,
                   const std::string& name) {
    text_ +=
        fmt::format("\n### {}\n\n{}\n{}", name, fenced(found.signature + ";"), markdown(words));
    auto at = begin;
    while (!lines_[at].ends_with('{')) ++at;
    return add_scope({.at = at + 1, .end = found.next - 1, .owner = name, .is_public = false});
  }

  Lines lines_;
  std::string text_;
};

}  // namespace

Result<std::string> cpp_page(const std::vector<Header>& headers) {
  CppPage page;
  for (const auto& header : headers) HORO_TRY_STATUS(page.add(header));
  return std::move(page).text();
}

}  // namespace horo::apps
