// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/html.hpp"

#include <string_view>

#include "apps/timeline_view/output.hpp"
#include "base/result.hpp"

namespace horo::apps {

namespace {

/// A name may not end the script that it stands in.
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

std::string as_html(const Figures& figures, Lanes& lanes) {
  std::string page = kPage;
  // From the end, so that no data is taken for a place.
  put(page, "{{LANES}}", lanes.json(figures.origin_ns));
  put(page, "{{FIGURES}}", without_tags(as_json(figures)));
  return page;
}

}  // namespace horo::apps
