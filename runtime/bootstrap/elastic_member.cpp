// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/elastic_member.hpp"

#include "runtime/bootstrap/board_sharing.hpp"
#include "runtime/bootstrap/elastic/generation_guard.hpp"
#include "runtime/bootstrap/epoch_watch.hpp"
#include "runtime/bootstrap/local/inherited_board.hpp"

namespace horo::runtime::bootstrap {

namespace {

/// The identity that the launcher gives for one generation. The meeting place is new, too, so that
/// no rank of another generation comes to it.
void apply(const elastic::MembershipAnswer& answer, Identity& identity) {
  auto& worker = identity.worker;
  worker.rank = Rank{answer.rank};
  worker.size = answer.size;
  worker.local_rank = LocalRank{answer.local_rank};
  worker.local_size = answer.local_size;
  worker.cross_rank = answer.cross_rank;
  worker.cross_size = answer.cross_size;
  worker.host_index = answer.host_index;
  identity.meeting_place +=
      fmt::format("generation={};host={};", answer.generation, answer.host_index);
}

/// The launcher has given this worker a place.
struct Placed {
  Identity identity;
  std::shared_ptr<JobStore> store;
  MembershipCaller::Place place;
  int agents_board = -1;
};

/// Meets the other members of the generation.
Result<Meeting> meet_members(Placed me, const MeetLimits& limits) {
  const auto& worker = me.identity.worker;
  const auto generation = me.place.answer.generation;
  HORO_TRY(auto guard, GenerationGuard::start(std::move(me.place.store), generation));
  RequestCollector hosts(fmt::format("horo/hosts/{}", generation));
  auto epochs = generation - 1;
  BoardSharing sharing({.identity = me.identity,
                        .store = worker.local_size == worker.size ? nullptr : me.store,
                        .hosts = hosts,
                        .epochs = epochs});
  const auto deadline = Deadline::in(SteadyClock::instance(), limits.start_timeout);
  HORO_TRY(BoardHandover handover, sharing.share({}, {deadline, guard->cancel()})
                                       .context(fmt::format("generation {}", generation)));
  if (handover.epoch.value() != generation) {
    return fail(Errc::protocol, "the board that was handed over is for generation {}, not for {}",
                handover.epoch, generation);
  }
  HORO_TRY(auto meeting, sharing.meeting_of(handover));
  HORO_TRY_STATUS(guard->protect(meeting.board.value()));
  HORO_TRY(meeting.watcher, watch_epoch(meeting, {.peers = std::move(handover.peers),
                                                  .release_timeout = limits.release_timeout,
                                                  .agents_board = me.agents_board,
                                                  .there = LocalRank{worker.board_slot},
                                                  .notes = LossNotes::kept}));
  meeting.guard = std::move(guard);
  return meeting;
}

}  // namespace

Status ElasticMember::map_agents(int board) {
  if (agents_.local_size() != 0) return {};
  HORO_TRY(agents_, map_board_header(board));
  return {};
}

Result<Meeting> ElasticMember::meet(Identity identity, const MeetLimits& limits) {
  const auto& worker = identity.worker;
  HORO_TRY(const UniqueFd agents, open_inherited_board(worker));
  HORO_TRY(const auto known, look_at(agents.value(), LocalRank{worker.board_slot}));
  HORO_TRY_STATUS(check_free(worker, known));
  HORO_TRY_STATUS(map_agents(agents.value()));

  auto store = std::make_shared<JobStore>(JobStore{worker.rendezvous, known.secret});
  store_ = store;
  worker_ = static_cast<std::uint32_t>(worker.worker);
  // Workers beyond the job's size wait for as long as the job lasts.
  const auto patience =
      last_ == 0 ? Deadline::never() : Deadline::in(SteadyClock::instance(), limits.membership);
  const JobStore agents_store{worker.membership, known.secret};
  HORO_TRY(auto place, caller_.call(agents_store, worker_, last_, patience));
  apply(place.answer, identity);
  const Membership membership{.generation = place.answer.generation,
                              .survivors = static_cast<int>(place.answer.survivors),
                              .notice = place.answer.notice,
                              .agents = &*agents_};
  HORO_TRY(auto meeting, meet_members({.identity = std::move(identity),
                                       .store = std::move(store),
                                       .place = std::move(place),
                                       .agents_board = agents.value()},
                                      limits));
  meeting.membership = membership;
  return meeting;
}

Status ElasticMember::resumed(Duration stood_still, std::int64_t repeated,
                              const Deadline& deadline) {
  if (store_ == nullptr || last_ == 0)
    return fail(Errc::invalid_argument, "this process is in no generation of an elastic job");
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(stood_still).count();
  return tell_resumed(*store_,
                      {.worker = worker_,
                       .generation = last_,
                       .stood_still_us = static_cast<std::uint64_t>(us),
                       .repeated = repeated},
                      deadline);
}

}  // namespace horo::runtime::bootstrap
