// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/worker_calls.hpp"

#include <utility>

#include "base/log.hpp"

namespace horo::launcher {

using elastic::MembershipKind;

namespace {

/// How long a call waits for the calls of the host's other workers. They come within this time
/// after a loss, and where a single worker calls, the time is not felt.
constexpr Duration kGatherTime = std::chrono::milliseconds(2);

/// Keys of this many generations stay, for workers that are slow to notice the end of theirs.
constexpr std::uint64_t kKeptGenerations = 16;

/// This many refusals stay. Nobody says when a process that is no worker has read its own.
constexpr std::size_t kKeptRefusals = 64;

}  // namespace

Result<std::unique_ptr<WorkerCalls>> WorkerCalls::open(Loop& loop, const kv::Secret& secret,
                                                       Send send) {
  std::unique_ptr<WorkerCalls> calls(new WorkerCalls(loop, std::move(send)));
  HORO_TRY(calls->server_, kv::Server::start(loop, secret, {}));
  // The server belongs to the object, so the handler does not outlive it.
  calls->server_->intercept(std::string(elastic::kCallPrefix),
                            [self = calls.get()](std::string_view key, std::string_view value) {
                              self->called(key, value);
                            });
  return calls;
}

void WorkerCalls::note(const protocol::Message& report) {
  if (const auto* started = std::get_if<protocol::Started>(&report))
    gathering_.begin(started->rank);
  if (const auto* exited = std::get_if<protocol::Exited>(&report)) ended(exited->exit.rank);
}

void WorkerCalls::called(std::string_view key, std::string_view value) {
  const auto call = elastic::decode_call(value);
  if (!call || key != elastic::call_key(call->worker)) {
    log::warn("horo-agent", "a worker has set '{}' to something that is no call for membership",
              key);
    return;
  }
  if (gathering_.add(*call)) return send_when_due();
  refuse(*call);
}

void WorkerCalls::refuse(const elastic::MembershipCall& call) {
  elastic::MembershipAnswer refusal;
  refusal.kind = MembershipKind::refused;
  refusal.reason =
      fmt::format("worker {} is not part of this job on this host, or not any more", call.worker);
  refusals_.push_back(elastic::answer_key(call.worker, call.attempt));
  store(refusals_.back(), encode(refusal));
  if (refusals_.size() <= kKeptRefusals) return;
  server_->erase(refusals_.front());
  refusals_.pop_front();
}

void WorkerCalls::ended(Rank worker) {
  gathering_.end(worker);
  if (const auto answer = answers_.extract(static_cast<std::uint32_t>(worker.value())))
    server_->erase(answer.mapped());
  send_when_due();
}

void WorkerCalls::send_when_due() {
  if (!gathering_.any()) return flush_timer_.reset();
  if (gathering_.complete()) return flush();
  if (!flush_timer_) flush_timer_ = loop_.after(kGatherTime, [this] { flush(); });
}

void WorkerCalls::flush() {
  flush_timer_.reset();
  if (gathering_.any()) send_({.calls = gathering_.take()});
}

void WorkerCalls::take(const protocol::Answered& order) {
  for (const auto& answer : order.answers) {
    gathering_.answered(answer.worker, answer.attempt);
    if (gathering_.has(answer.worker)) put(answer);
  }
}

void WorkerCalls::take(const protocol::EndMeeting& order) {
  store(elastic::over_key(order.generation), {});
  if (order.generation > kKeptGenerations)
    server_->erase(elastic::over_key(order.generation - kKeptGenerations));
}

void WorkerCalls::put(const elastic::CallAnswer& answer) {
  auto& last = answers_[answer.worker];
  if (!last.empty()) server_->erase(last);
  last = elastic::answer_key(answer.worker, answer.attempt);
  store(last, encode(answer.answer));
}

void WorkerCalls::store(const std::string& key, std::string value) {
  if (auto stored = server_->set(key, std::move(value)); !stored)
    log::error("horo-agent", "workers of this host get no answer: {}", stored.error().message);
}

}  // namespace horo::launcher
