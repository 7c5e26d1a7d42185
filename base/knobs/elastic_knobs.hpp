// SPDX-License-Identifier: Apache-2.0
// The rows of the knobs for elastic jobs, whose ranks come and go while they run. The others are in
// knobs.hpp and launcher_knobs.hpp.
#pragma once

#include <chrono>
#include <string_view>

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"
#include "base/knobs/number_range.hpp"

namespace horo::knobs {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

inline constexpr int kMostElasticRanks = 1'000'000;

inline constexpr Knob<int> kMinNp{
    .text = {.key = "min.np",
             .group = kElastic,
             .help = "make the job elastic: it goes on while so many ranks are left, and waits for "
                     "hosts when there are fewer; 0, beside --max-np: as many as -np",
             .unit = "ranks",
             .reader = KnobReader::launcher,
             .flags = {Spelling{.name = "min-num-proc"}}},
    .fallback = 0,
    .least = 0,
    .most = kMostElasticRanks};

inline constexpr Knob<int> kMaxNp{
    .text = {.key = "max.np",
             .group = kElastic,
             .help = "make the job elastic: it uses hosts and slots that come later, up to so many "
                     "ranks; 0, beside --min-np: as many as there are slots",
             .unit = "ranks",
             .reader = KnobReader::launcher,
             .flags = {Spelling{.name = "max-num-proc"}}},
    .fallback = 0,
    .least = 0,
    .most = kMostElasticRanks};

inline constexpr Knob<int> kSpares{
    .text = {.key = "spares",
             .group = kElastic,
             .help = "ranks beyond --max-np that are started and wait, to replace a rank that is "
                     "lost",
             .unit = "ranks",
             .reader = KnobReader::launcher},
    .fallback = 0,
    .least = 0,
    .most = 1024};

inline constexpr Knob<Duration> kElasticTimeout{
    .text = {.key = "elastic.timeout",
             .group = kElastic,
             .help = "how long an elastic job waits for enough hosts and ranks before it ends; 0: "
                     "the default",
             .unit = "s",
             .zero_is_default = true,
             .variable = {.name = "HOROVOD_ELASTIC_TIMEOUT"}},
    .fallback = 600s,
    .least = 1ms,
    .most = 240h};

inline constexpr Knob<Duration> kRejoinTimeout{
    .text = {.key = "rejoin.timeout",
             .group = kElastic,
             .help =
                 "how long a rank may take, after another one is lost, to come for its place in "
                 "the next generation; then it is ended",
             .unit = "s",
             .reader = KnobReader::launcher},
    .fallback = 60s,
    .least = 1ms,
    .most = 24h};

inline constexpr Knob<Duration> kTermGrace{
    .text = {.key = "term.grace",
             .group = kElastic,
             .help =
                 "time that the ranks of a host have to end their step and leave an elastic job "
                 "after the host's agent got SIGTERM; then they are ended",
             .unit = "s",
             .reader = KnobReader::launcher},
    .fallback = 30s,
    .least = 0s,
    .most = 24h};

inline constexpr Knob<int> kResetLimit{
    .text = {.key = "reset.limit",
             .group = kElastic,
             .help = "end an elastic job that would need more changes of its ranks than this; -1: "
                     "no limit",
             .unit = "changes",
             .reader = KnobReader::launcher},
    .fallback = -1,
    .least = -1,
    .most = 1'000'000'000};

inline constexpr Knob<int> kSlotRestarts{
    .text = {.key = "slot.restarts",
             .group = kElastic,
             .help = "how often a slot of an elastic job whose rank has failed gets a new rank "
                     "before its host is put aside",
             .unit = "ranks",
             .reader = KnobReader::launcher},
    .fallback = 3,
    .least = 0,
    .most = 1'000'000};

inline constexpr Knob<std::string_view> kBlacklistCooldownRange{
    .text = {.key = "blacklist.cooldown.range",
             .group = kElastic,
             .help = "shortest and longest time in seconds for which a host that failed is put "
                     "aside, as 10,100; it grows with every failure; by default such a host does "
                     "not return",
             .unit = "s",
             .reader = KnobReader::launcher,
             .has_form = is_cooldown_range,
             .form = "MIN,MAX: whole seconds from 1 to 3600, the first not above the second"},
    .fallback = ""};

}  // namespace horo::knobs
