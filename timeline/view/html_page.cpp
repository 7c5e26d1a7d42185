// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/html_page.hpp"

#include <string_view>

#include "base/result.hpp"
#include "timeline/view/figures_text.hpp"

namespace horo::timeline {

namespace {

/// Escapes '<', so that a name cannot end the script element that contains it.
std::string without_tags(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

void put(std::string& page, std::string_view place, const std::string& text) {
  const auto at = page.find(place);
  HORO_CHECK(at != std::string::npos);
  page.replace(at, place.size(), text);
}

}  // namespace

std::string as_html(const Figures& figures, PageData& data) {
  std::string page = kPage;
  // The last place is filled first, so that inserted data is never searched for a place.
  put(page, "{{OPERATIONS}}", data.json(figures.origin_ns));
  put(page, "{{FIGURES}}", without_tags(as_json(figures)));
  return page;
}

}  // namespace horo::timeline
