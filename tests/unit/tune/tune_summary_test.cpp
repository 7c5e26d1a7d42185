// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/tune_summary.hpp"

#include <catch2/catch.hpp>

#include "apps/tune/record/read_tune_log.hpp"
#include "apps/tune/record/summary_views.hpp"
#include "tests/unit/tune/tune_logs.hpp"

using namespace horo;
using namespace horo::apps;

namespace {

TuneRecord record_of(const std::string& text) {
  return parse_tune_log(text, "x").value();
}

bool has_verdict(const TuneSummary& summary, const std::string& part) {
  return std::any_of(summary.verdicts.begin(), summary.verdicts.end(),
                     [&](const auto& one) { return one.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("samples of one setting become a mean with its standard error") {
  const auto summary = summarise(record_of(horo_log()));
  REQUIRE(summary.settings.size() == 4);
  const auto& fallback = summary.settings[*summary.reference];
  CHECK(fallback.samples == 3);
  CHECK(fallback.score == Approx(101));
  CHECK(fallback.error == Approx(2 / std::sqrt(3.0)));
  CHECK(fallback.first_line == 2);
}

TEST_CASE("the winner of the turns is kept, with the log's gain and confidence") {
  const auto summary = summarise(record_of(horo_log()));
  CHECK(summary.keep_best);
  CHECK(summary.settings[*summary.best].values[0] == "8");
  REQUIRE(summary.gain);
  CHECK(summary.gain->in_turns);
  CHECK(summary.gain->gain == 0.5);
  CHECK(has_verdict(summary,
                    "keep fusion threshold 8 MiB, cycle time 0.5 ms: it is faster than the default "
                    "by 50.0 % +- 1.0 %, measured in turns, with a confidence of 99.8 %"));
}

TEST_CASE("a default that stayed in the turns is said to stay, with the difference") {
  auto text = horo_log();
  text.replace(text.find("challenger won,50,1,0.2"), 23, "default stays,0.8,1.5,30");
  const auto summary = summarise(record_of(text));
  CHECK_FALSE(summary.keep_best);
  CHECK(has_verdict(summary, "the default stays: in turns, fusion threshold 8 MiB"));
  CHECK(has_verdict(summary, "differed by 0.8 % +- 1.5 %, within the noise"));
}

TEST_CASE("turns that a setting lost are said to show noise, a slower setting, or too little") {
  const auto verdict_of = [](const std::string& figures) {
    auto text = horo_log();
    text.replace(text.find("challenger won,50,1,0.2"), 23, "default stays," + figures);
    return summarise(record_of(text));
  };
  CHECK(has_verdict(verdict_of("-4,1,99"), "differed by -4.0 % +- 1.0 %, so it is slower"));
  CHECK(has_verdict(verdict_of("4,1.8,3"), "4.0 % +- 1.8 %, which is not certain enough"));
  auto failed = record_of(horo_log());
  failed.kind = TuneSource::trials;
  failed.ending->state = "default stays";
  failed.ending->gain_percent = failed.ending->gain_error_percent = 0;
  failed.samples.back().failure = "exit code 3";
  CHECK(has_verdict(summarise(failed), "could not be compared: exit code 3"));
}

TEST_CASE("each ending of a search without turns says why the default stays") {
  const auto verdict_of = [](const std::string& state) {
    auto text = horo_log();
    text.resize(text.find("0,0,0,1,0,64,101"));
    return summarise(record_of(text + "0,0,0,1,0,64,101,bytes/us,2,10,50," + state + ",,,\n"));
  };
  CHECK(has_verdict(verdict_of("default is best"), "no other setting is expected to be faster"));
  CHECK(has_verdict(verdict_of("budget too short"), "raise --autotune-bayes-opt-max-samples"));
  CHECK(has_verdict(verdict_of("nothing to tune"), "every value that could change is set"));
}

TEST_CASE("a winner whose turns are missing in the log is kept all the same") {
  const auto record = record_of(std::string(kHoroHeader) +
                                "0,0,0,1,0,64,100,bytes/us,2,10,50,first points,,,\n"
                                "0,0,0,1,1,4,120,bytes/us,2.5,12,50,first points,,,\n"
                                "0,0,0,1,0,64,101,bytes/us,2,10,50,challenger won,50,1,0.2\n");
  const auto summary = summarise(record);
  CHECK(setting_to_keep(record));
  CHECK(has_verdict(summary, "keep fusion threshold 64 MiB, cycle time 0 ms: the search ended"));
}

TEST_CASE("the best so far is a mean, so it falls when a lucky setting is measured again") {
  const auto summary = summarise(record_of(std::string(kHorovodHeader) +
                                           "0,0,0,0,5,4,300\n0,0,0,0,9,4,500\n0,0,0,0,9,4,300\n"));
  CHECK(summary.best_so_far == std::vector<double>{300, 500, 400});
}

TEST_CASE("one sample, no sample and no score are said to be so") {
  const std::string head(kHorovodHeader);
  CHECK(has_verdict(summarise(record_of(head + "0,0,0,0,5,4,300\n")), "nothing to compare"));
  CHECK(has_verdict(summarise(record_of(head)), "the log has no sample"));
  CHECK(has_verdict(summarise(record_of(head + "0,0,0,0,5,4,0\n0,0,0,0,9,4,0\n")),
                    "none of the 2 samples has a score: no tensor was reduced"));
  const auto warm_up =
      record_of(std::string(kHoroHeader) + "0,0,0,1,0,64,0,bytes/us,0,0,50,ended early,,,\n");
  CHECK(warm_up.samples.empty());
  CHECK(has_verdict(summarise(warm_up), "the training ended during the warm-up"));
}

TEST_CASE("a training that ended before its search keeps the default, and the best is named") {
  auto text = horo_log();
  text.resize(text.find("0,0,0,1,0,64,101"));
  const auto running = summarise(record_of(text));
  CHECK(has_verdict(running, "the job still runs, or was killed"));
  CHECK_FALSE(running.keep_best);
  text += "0,0,0,1,0,64,101,bytes/us,2,10,50,ended early,,,\n";
  const auto ended = summarise(record_of(text));
  CHECK_FALSE(ended.keep_best);
  CHECK(has_verdict(ended, "the training ended before the search was over, after 5 samples"));
  CHECK(has_verdict(ended, "fusion threshold 8 MiB, cycle time 0.5 ms is expected to be faster"));
}

TEST_CASE("what ended a search early is named, with and without samples and a last line") {
  struct Case {
    EarlyStop stop;
    std::string what;
  };

  const Case cases[] = {{EarlyStop::program_ended, "the training ended"},
                        {EarlyStop::failures, "the command failed"},
                        {EarlyStop::budget, "the budget ended"},
                        {EarlyStop::trials, "all trials were used"},
                        {EarlyStop::user, "you stopped the search"}};
  auto text = horo_log();
  text.resize(text.find("0,0,0,1,0.5,8,152"));
  const std::string last = "0,0,0,1,0,64,101,bytes/us,2,10,50,ended early,";
  for (const auto& one : cases) {
    CAPTURE(one.what);
    for (const auto* ending : {"", ",,\n", "30,2,1\n"}) {
      CAPTURE(ending);
      auto record = record_of(*ending == '\0' ? text : text + last + ending);
      record.early_stop = one.stop;
      const auto summary = summarise(record);
      CHECK_FALSE(summary.keep_best);
      CHECK(has_verdict(summary, one.what + " before the search was over, after 7 samples; the "
                                            "default stays"));
      CHECK(has_verdict(summary, *ending == '3' ? "in the turns until then, fusion threshold 8"
                                                : "is expected to be faster"));
    }
    if (one.stop == EarlyStop::program_ended) continue;
    for (const auto kind : {TuneSource::horo_log, TuneSource::trials}) {
      auto nothing = record_of(kHoroHeader);
      nothing.kind = kind;
      nothing.early_stop = one.stop;
      CHECK(has_verdict(summarise(nothing), one.what + " before anything was measured"));
    }
  }
}

TEST_CASE("a log of Horovod: the lucky score is not expected again, and the default is unknown") {
  const auto record = read_tune_log(std::string(HORO_TEST_DATA) + "/horovod-autotune.csv").value();
  const auto summary = summarise(record);
  CHECK(record.samples.size() == 44);
  CHECK(summary.noise > 0.05);
  CHECK(has_verdict(summary, "the highest single score, 891.6 MB/s in line 44, is probably luck"));
  CHECK(has_verdict(summary, "Horovod does not measure its own default"));
  CHECK(summary.settings[*summary.best].predicted < 891);
  REQUIRE(summary.surface);
  CHECK(summary.surface->scores.size() == summary.surface->xs.size() * summary.surface->ys.size());
  CHECK(summary.surface->xs.front() == Approx(1.75884));
  CHECK(summary.surface->ys.back() == Approx(85.9753));
}

TEST_CASE("equal scores, a failed setting and a column of one value are no trouble") {
  const auto summary = summarise(
      record_of(std::string(kHorovodHeader) + "0,0,0,0,5,4,300\n0,0,0,0,9,4,300\n0,0,0,0,7,4,0\n"));
  CHECK(summary.settings.back().failures == 1);
  CHECK_FALSE(summary.keep_best);
  CHECK_FALSE(summary.surface);
}

TEST_CASE("no text of a log can end the page's script") {
  auto record = record_of(horo_log());
  record.source = "</script><script>alert(1)";
  const auto page = summary_page(record, summarise(record));
  CHECK(page.find("</script><script>alert") == std::string::npos);
  CHECK(page.find("{{SUMMARY}}") == std::string::npos);
}

TEST_CASE("the text names the kept setting and the columns that never changed") {
  const auto record = record_of(horo_log());
  const auto text = summary_text(record, summarise(record));
  CHECK(text.find("     keep                        8") != std::string::npos);
  CHECK(text.find("the same in all samples: wake delay 50 us") != std::string::npos);
}

TEST_CASE("a setting of an earlier job that passed its check is kept, and named as such") {
  for (const bool winner_first : {false, true}) {
    CAPTURE(winner_first);
    auto text = checked_log();
    if (winner_first)
      text.insert(text.find("0,0,0,1,0,64"), "0,0,0,1,0.5,8,119,bytes/us,2,10,50,check,,,\n");
    const auto record = record_of(text);
    const auto summary = summarise(record);
    CHECK(summary.keep_best);
    CHECK(summary.settings[*summary.reference].values[0] == "64");
    CHECK(setting_to_keep(record) == record.ending->values);
    CHECK(
        has_verdict(summary, "keep fusion threshold 8 MiB, cycle time 0.5 ms, as an earlier job"));
    CHECK(has_verdict(summary, "faster than the default by 20.5 % +- 2.0 %"));
  }
}

TEST_CASE("the last of several searches is compared with the setting before it") {
  const auto record = record_of(horo_log() + later_search() +
                                "0,0,0,1,2,16,81,bytes/us,2,10,50,challenger won,15,1,0.2\n");
  const auto summary = summarise(record);
  CHECK(record.samples.size() == 5);
  CHECK(summary.settings[*summary.reference].values[0] == "8");
  CHECK(has_verdict(summary,
                    "keep fusion threshold 16 MiB, cycle time 2 ms: it is faster than the "
                    "setting before by 15.0 %"));
  CHECK(setting_to_keep(record)->front() == "16");
  CHECK(summary_text(record, summary).find("the log has 2 searches") != std::string::npos);
}

TEST_CASE("a search in vain keeps what the search before it found") {
  const auto text = horo_log() + later_search();
  const auto running = record_of(text);
  CHECK_FALSE(running.ending);
  CHECK(setting_to_keep(running)->front() == "8");
  for (const std::string ending : {"default stays,0.8,1.5,30", "ended early,,,"}) {
    CAPTURE(ending);
    const auto record = record_of(text + "0,0,0,1,0.5,8,70,bytes/us,2,10,50," + ending + "\n");
    const auto summary = summarise(record);
    CHECK_FALSE(summary.keep_best);
    CHECK(setting_to_keep(record)->front() == "8");
    CHECK(has_verdict(summary, ending[0] == 'd' ? "the setting before stays: in turns"
                                                : "the setting before stays, because"));
  }
}

TEST_CASE("a later search that returns to the default leaves nothing to set") {
  const auto record = record_of(horo_log() + later_search() +
                                "0,0,0,1,0,64,81,bytes/us,2,10,50,challenger won,15,1,0.2\n");
  CHECK_FALSE(setting_to_keep(record));
}
