// SPDX-License-Identifier: Apache-2.0
#include "base/elastic/membership_messages.hpp"

#include "base/board_header.hpp"
#include "base/elastic/membership_forms.hpp"

namespace horo::elastic {

namespace {

/// index < size, both at least what an index and a size can be.
constexpr bool is_index(std::int32_t index, std::int32_t size) {
  return index >= 0 && index < size;
}

std::string_view problem_of_member(const MembershipAnswer& m) {
  if (m.generation < 1 || m.generation > kMostGeneration) return "has no valid generation";
  if (!is_index(m.rank, m.size)) return "has no rank below its size";
  if (!is_index(m.local_rank, m.local_size) || m.local_size > m.size ||
      m.local_size > kMaxLocalRanks)
    return "has no valid place on its host";
  if (!is_index(m.cross_rank, m.cross_size) || m.cross_size > m.size)
    return "has no valid place across hosts";
  if (!is_index(m.host_index, m.size)) return "has no valid host";
  if (m.survivors > static_cast<std::uint32_t>(m.size)) return "has more survivors than ranks";
  return "";
}

}  // namespace

}  // namespace horo::elastic

template <>
struct horo::FieldsOf<horo::elastic::TrainingResumed> {
  static void visit(auto& field, auto& m) {
    field("worker", m.worker, wire::Fixed{});
    field("generation", m.generation, wire::Fixed{});
    field("stood_still_us", m.stood_still_us, wire::Fixed{});
    field("repeated", m.repeated, wire::Fixed{});
  }
};

namespace horo::elastic {

std::string call_key(std::uint32_t worker) {
  return fmt::format("{}{}", kCallPrefix, worker);
}

std::string answer_key(std::uint32_t worker, std::uint32_t attempt) {
  return fmt::format("horo/elastic/answer/{}/{}", worker, attempt);
}

std::string over_key(std::uint64_t generation) {
  return fmt::format("horo/elastic/over/{}", generation);
}

std::string resumed_key(std::uint32_t worker) {
  return fmt::format("{}{}", kResumedPrefix, worker);
}

std::string encode(const MembershipCall& call) {
  return encode_fields(call);
}

std::string encode(const MembershipAnswer& answer) {
  return encode_fields(answer);
}

std::string encode(const TrainingResumed& resumed) {
  return encode_fields(resumed);
}

std::string_view problem_of(const MembershipCall& call) {
  if (call.worker > kMostWorker) return "has no valid worker";
  if (call.attempt == 0) return "has no attempt";
  return call.generation > kMostGeneration ? "has no valid generation" : "";
}

std::string_view problem_of(const MembershipAnswer& answer) {
  return answer.kind == MembershipKind::member ? problem_of_member(answer) : std::string_view{};
}

Result<MembershipCall> decode_call(std::string_view bytes) {
  HORO_TRY(const auto call, decode_fields<MembershipCall>(as_bytes(bytes), "a worker's call"));
  if (problem_of(call).empty()) return call;
  return fail(Errc::protocol,
              "a worker's call is invalid: worker {}, attempt {}, generation {} are not all "
              "possible numbers",
              call.worker, call.attempt, call.generation);
}

Result<MembershipAnswer> decode_answer(std::string_view bytes) {
  HORO_TRY(auto answer,
           decode_fields<MembershipAnswer>(as_bytes(bytes), "the launcher's answer to a worker"));
  const auto problem = problem_of(answer);
  if (problem.empty()) return answer;
  return fail(Errc::protocol, "the launcher's answer to a worker is invalid: it {}", problem);
}

Result<TrainingResumed> decode_resumed(std::string_view bytes) {
  HORO_TRY(const auto resumed, decode_fields<TrainingResumed>(
                                   as_bytes(bytes), "a worker's word that training goes on"));
  if (resumed.worker <= kMostWorker && resumed.generation >= 1 &&
      resumed.generation <= kMostGeneration && resumed.stood_still_us <= kMostStoodStillUs &&
      resumed.repeated >= -1)
    return resumed;
  return fail(Errc::protocol,
              "a worker's word that training goes on is invalid: worker {}, generation {}, {} us "
              "and {} steps are not all possible numbers",
              resumed.worker, resumed.generation, resumed.stood_still_us, resumed.repeated);
}

}  // namespace horo::elastic
