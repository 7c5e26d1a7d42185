// SPDX-License-Identifier: Apache-2.0
// The times at which devices worked, from a Chrome trace to figures, findings and the page.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/analysis/analysis.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/input/chrome_operations.hpp"
#include "timeline/view/figures_text.hpp"
#include "timeline/view/page_data.hpp"

using namespace horo::timeline;

namespace {

/// The work of the device that a trace shows.
struct Shown {
  double waits_us = 0;   ///< Before the device begins to work.
  double works_us = 0;   ///< By NCCL.
  std::string reason{};  ///< Why times are missing; empty: they are not.
};

void take_device(ChromeOperations& trace, double us, const Shown& shown) {
  ChromeEvent event{.phase = 'X', .category = "device", .pid = "2", .tid = "0"};
  event.name = "NCCL_ALLREDUCE";
  event.ts_us = us;
  event.duration_us = shown.works_us;
  event.arguments.emplace_back("tensor", "grad");
  if (!shown.reason.empty()) {
    event.phase = 'i';
    event.name = "NO_DEVICE_TIMES";
    event.arguments = {{"reason", shown.reason}};
  }
  trace.take(event);
}

/// Ten operations of 1 ms each, one after the other, of which each waits for no rank.
void take_trace(OperationSink& sink, const Shown& shown) {
  ChromeOperations trace(sink);
  ChromeEvent name{.phase = 'M', .name = "process_name", .pid = "1"};
  name.arguments.emplace_back("name", "grad");
  trace.take(name);
  for (int i = 0; i < 10; ++i) {
    const auto at = i * 1000.0;
    trace.take({.phase = 'B', .name = "NEGOTIATE_ALLREDUCE", .pid = "1", .ts_us = at});
    trace.take({.phase = 'E', .pid = "1", .ts_us = at});
    trace.take({.phase = 'B', .name = "ALLREDUCE", .pid = "1", .ts_us = at});
    trace.take({.phase = 'B', .name = "SHM_ALLREDUCE", .pid = "1", .ts_us = at});
    take_device(trace, at + shown.waits_us, shown);
    trace.take({.phase = 'E', .pid = "1", .ts_us = at + 1000});
    trace.take({.phase = 'E', .pid = "1", .ts_us = at + 1000});
  }
  trace.finish();
}

Figures figures_of(const Shown& shown) {
  Analysis analysis({}, 5);
  take_trace(analysis, shown);
  return analysis.finish();
}

std::string finding(const Figures& figures, std::string_view kind) {
  for (const auto& verdict : judge(figures)) {
    if (verdict.kind == kind) return verdict.text;
  }
  return {};
}

}  // namespace

TEST_CASE("an operation has the time that the device worked for it") {
  const auto figures = figures_of({.waits_us = 100, .works_us = 700});
  CHECK(figures.operations == 10);
  CHECK(figures.device.operations == 10);
  CHECK(figures.device.worked_ns == 7e6);
  CHECK(figures.device.host_ns == 10e6);
  REQUIRE(figures.device.activities.contains("NCCL_ALLREDUCE"));
  CHECK(figures.device.activities.at("NCCL_ALLREDUCE").times == 10);
  REQUIRE_FALSE(figures.slowest.empty());
  CHECK(figures.slowest.front().device_ns == 700'000);
  const auto text = as_text(figures);
  INFO(text);
  CHECK(
      text.find("10 operations on devices took 10 ms, and a rank's device worked for 7 ms, 70 %") !=
      std::string::npos);
  CHECK(text.find("NCCL_ALLREDUCE") != std::string::npos);
  CHECK(as_json(figures).find(R"("device_ns": 700000)") != std::string::npos);
  CHECK(finding(figures, "device_queue").empty());
  CHECK(finding(figures, "device_bound").empty());
}

TEST_CASE("operations that take much longer than the device works for them queue") {
  const auto text = finding(figures_of({.waits_us = 890, .works_us = 100}), "device_queue");
  CHECK(text.find("a device works for 10 % of the time that they take, 1 ms of 10 ms") !=
        std::string::npos);
  CHECK(text.find("ready late") != std::string::npos);
}

TEST_CASE("operations that take as long as the device works for them are bound by it") {
  const auto text = finding(figures_of({.works_us = 960}), "device_bound");
  CHECK(text.find("96 % of the time") != std::string::npos);
  CHECK(text.find("100 % of that is NCCL_ALLREDUCE") != std::string::npos);
}

TEST_CASE("the findings say why times of a device are missing, and judge no device") {
  const auto figures = figures_of({.reason = "the device could not record an event"});
  CHECK(figures.device.operations == 0);
  CHECK(finding(figures, "no_device_times")
            .find("missing for 10 operations: the device could not record an event") !=
        std::string::npos);
  CHECK(finding(figures, "device_queue").empty());
  CHECK(as_text(figures).find("on devices") == std::string::npos);
}

TEST_CASE("the page has the phases of each rank's device, and the device's time of operations") {
  Analysis analysis({}, 5);
  PageData page(analysis);
  take_trace(page, {.waits_us = 100, .works_us = 700});
  const auto json = page.json(0);
  INFO(json);
  // The activity's number, then the difference of the times and the duration in tenths of
  // microseconds.
  CHECK(json.find(R"("devices":[[0,[0,1000,7000,0,10000,7000)") != std::string::npos);
  CHECK(json.find(",7000]") != std::string::npos);
  CHECK(analysis.finish().device.worked_ns == 7e6);
}
