// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/read_tune_log.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/tune/tune_logs.hpp"

using namespace horo;
using namespace horo::apps;

TEST_CASE("a log of Horovod gives settings and scores, also with its blank after the third comma") {
  const auto record =
      parse_tune_log(std::string(kHorovodHeader) + "0,1,0, 1,5,4,332.076\n0,0,0,1,50,32,300\n", "x")
          .value();
  CHECK(record.kind == TuneSource::horovod_log);
  CHECK(record.warnings.empty());
  REQUIRE(record.samples.size() == 2);
  CHECK(record.samples[0].score == 332.076);
  CHECK(record.samples[0].line == 2);
  CHECK(record.columns[0].name == "fusion threshold");
  CHECK(record.samples[0].values == std::vector<std::string>{"4", "5", "0", "1", "0", "1"});
  CHECK_FALSE(record.ending);
}

TEST_CASE(
    "the last line of a finished search of Horovod repeats the best sample and is no sample") {
  const std::string rows = "0,0,0, 0,5,4,332\n0,0,0, 0,50,32,400\n0,0,0, 0,25,16,259\n";
  const auto record =
      parse_tune_log(std::string(kHorovodHeader) + rows + "0,0,0, 0,50,32,400\n", "x").value();
  CHECK(record.samples.size() == 3);
  REQUIRE(record.ending);
  CHECK(record.ending->values == record.samples[1].values);
}

TEST_CASE("a log of Horo gives standard errors, steps, stages, and the ending with its gain") {
  const auto record = parse_tune_log(horo_log(), "x").value();
  CHECK(record.kind == TuneSource::horo_log);
  REQUIRE(record.samples.size() == 8);
  CHECK(record.samples[1].standard_error == 2.5);
  CHECK(record.samples[1].steps == 12);
  CHECK(record.samples[1].stage == "first points");
  CHECK(record.columns[2].name == "wake delay");
  REQUIRE(record.ending);
  CHECK(record.ending->state == kChallengerWon);
  CHECK(record.ending->gain_percent == 50);
  CHECK(record.ending->chance_percent == 0.2);
}

TEST_CASE("a training that ended in the warm-up ended early") {
  const std::string line = "0,0,0,1,0,64,0,bytes/us,0,0,50,ended in warm-up,,,\n";
  const auto record = parse_tune_log(kHoroHeader + line, "x").value();
  CHECK(record.samples.empty());
  REQUIRE(record.ending);
  CHECK(record.ending->state == kEndedEarly);
}

TEST_CASE("a line that was cut is left out with a warning that names it") {
  auto text = horo_log();
  text.resize(text.rfind(",duel") - 3);  // In the middle of the last turn.
  const auto record = parse_tune_log(text, "job.csv").value();
  CHECK(record.samples.size() == 7);
  CHECK_FALSE(record.ending);
  REQUIRE(record.warnings.size() == 1);
  CHECK(record.warnings[0].starts_with("job.csv:9: the line has no end"));
}

TEST_CASE("damaged lines in the middle are left out, and the others are used") {
  const auto record = parse_tune_log(std::string(kHorovodHeader) +
                                         "0,0,0,0,5,4,332\n0,0,0,0,5,4\n0,0,0,0,abc,4,1\n\n"
                                         "0,0,0,0,5,4,x\n0,0,0,0,9,4,300\n",
                                     "x")
                          .value();
  CHECK(record.samples.size() == 2);
  REQUIRE(record.warnings.size() == 3);
  CHECK(record.warnings[0] == "x:3: the line has 6 values instead of 7; it is left out");
  CHECK(record.warnings[1] == "x:4: 'abc' is no value of cycle_time_ms; the line is left out");
  CHECK(record.warnings[2] == "x:6: 'x' is no value of score; the line is left out");
}

TEST_CASE("a file that is no log is an error that names the missing column") {
  CHECK(parse_tune_log("", "x").error().message.starts_with("the autotune log 'x' is empty"));
  CHECK(parse_tune_log("\n\n", "x").error().message.starts_with("the autotune log 'x' is empty"));
  const auto other = parse_tune_log("cycle_time_ms,tensor_fusion_threshold\n1,2\n", "x");
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("'x' is no autotune log") == 0);
  CHECK(other.error().message.find("no column 'score'") != std::string::npos);
  CHECK_FALSE(parse_tune_log(std::string("\x7f\x45\x4c\x46\0\0", 6), "x"));
}

TEST_CASE("columns of a later version are ignored with a warning") {
  const auto record =
      parse_tune_log("cycle_time_ms,tensor_fusion_threshold,score,chunk_kib\n5,4,332,64\n", "x")
          .value();
  CHECK(record.samples.size() == 1);
  REQUIRE(record.warnings.size() == 1);
  CHECK(record.warnings[0] == "x:1: this version does not know the columns 'chunk_kib'");
}

TEST_CASE("a score of 0 means that no tensor was reduced") {
  const auto record =
      parse_tune_log(std::string(kHorovodHeader) + "0,0,0,0,5,4,0\n0,0,0,0,5,4,nan\n", "x").value();
  REQUIRE(record.samples.size() == 2);
  CHECK(record.samples[0].failure == "no tensor was reduced");
  CHECK(record.samples[1].failure == "no tensor was reduced");
}

TEST_CASE("a log that cannot be read is an error that names it") {
  const auto record = read_tune_log("/nonexistent/tuning.csv");
  REQUIRE_FALSE(record);
  CHECK(record.error().code == Errc::not_found);
  CHECK(record.error().message.find("autotune log '/nonexistent/tuning.csv'") == 0);
}
