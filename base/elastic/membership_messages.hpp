// SPDX-License-Identifier: Apache-2.0
// How a worker of an elastic job asks the launcher for its place in the next generation. The agent
// of its host has a small key-value server for this: the worker sets call_key(worker) there and
// waits for answer_key(worker, attempt). The agent passes the calls of all its workers on to the
// launcher, which forms a generation from the workers that have called.
// docs/design/elastic-ranks.md has the bytes and the order of events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/codec/bytes.hpp"
#include "base/result.hpp"

namespace horo::elastic {

/// The agent's server hands over values that are set under this prefix, and stores none of them.
inline constexpr std::string_view kCallPrefix = "horo/elastic/call/";

std::string call_key(std::uint32_t worker);
std::string answer_key(std::uint32_t worker, std::uint32_t attempt);

/// Exists once the launcher has given up a generation or has begun the next one: no rank can meet
/// in it any more.
std::string over_key(std::uint64_t generation);

/// As kCallPrefix, but at the launcher's server: a member tells how its generation began. No answer
/// follows.
inline constexpr std::string_view kResumedPrefix = "horo/elastic/resumed/";

std::string resumed_key(std::uint32_t worker);

inline constexpr std::uint32_t kMostWorker = 0x7fffffff;
inline constexpr std::uint64_t kMostStoodStillUs = std::uint64_t{1} << 52U;  ///< 142 years.
inline constexpr std::uint64_t kMostGeneration = (std::uint64_t{1} << 56U) - 1;

/// A worker is ready for the next generation.
struct MembershipCall {
  std::uint32_t worker = 0;
  std::uint32_t attempt = 1;     ///< Rises from 1 in one process.
  std::uint64_t generation = 0;  ///< The last one of which it was a member; 0: none.

  friend bool operator==(const MembershipCall&, const MembershipCall&) = default;
};

enum class MembershipKind : std::uint8_t {
  member = 1,
  removed = 2,  ///< The process is no longer part of the job, and should end with code 0.
  refused = 3,  ///< No generation can be formed, or none with this worker.
};

/// The numbers count only for a member, and the reason for the others.
struct MembershipAnswer {
  MembershipKind kind = MembershipKind::member;
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;
  std::int32_t cross_rank = 0;
  std::int32_t cross_size = 1;
  std::int32_t host_index = 0;

  /// Ranks 0 ... survivors-1 were members of the generation before; 0 in the first.
  std::uint32_t survivors = 0;
  std::uint64_t notice = 0;  ///< The generation has all changes up to this sequence number.
  std::string reason;        ///< For people.

  friend bool operator==(const MembershipAnswer&, const MembershipAnswer&) = default;
};

/// The answer to one call.
struct CallAnswer {
  std::uint32_t worker = 0;
  std::uint32_t attempt = 1;  ///< Which attempt of the call it answers.
  MembershipAnswer answer;

  friend bool operator==(const CallAnswer&, const CallAnswer&) = default;
};

/// A training goes on in a new generation, as its rank 0 tells for the launcher's reports.
struct TrainingResumed {
  std::uint32_t worker = 0;
  std::uint64_t generation = 0;
  std::uint64_t stood_still_us = 0;  ///< Since the last step that was complete.
  std::int64_t repeated = -1;        ///< Steps that are done again; -1: unknown.

  friend bool operator==(const TrainingResumed&, const TrainingResumed&) = default;
};

std::string encode(const MembershipCall& call);
std::string encode(const MembershipAnswer& answer);
std::string encode(const TrainingResumed& resumed);

/// Says what is wrong with a message, as words after "it"; empty: nothing.
std::string_view problem_of(const MembershipCall& call);
std::string_view problem_of(const MembershipAnswer& answer);

/// Fails: protocol.
Result<MembershipCall> decode_call(std::string_view bytes);

/// A member's numbers fit together. Fails: protocol.
Result<MembershipAnswer> decode_answer(std::string_view bytes);

/// Fails: protocol.
Result<TrainingResumed> decode_resumed(std::string_view bytes);

}  // namespace horo::elastic
