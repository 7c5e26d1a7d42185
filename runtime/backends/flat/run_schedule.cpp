// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/flat/run_schedule.hpp"

namespace horo::runtime {

namespace {

constexpr unsigned kNumberBits = 20;  // Low bits of a tag number messages, the others segments.

}  // namespace

Status run_schedule(Transport& transport, const Schedule& plan, const ScheduleRun& run,
                    std::vector<std::unique_ptr<PendingMessage>>& messages) {
  const auto message = [&](const Transfer& transfer) {
    return TransportMessage{.peer = transfer.peer,
                            .tag = run.segment << kNumberBits | transfer.number,
                            .at = run.memory.at(transfer.offset),
                            .bytes = transfer.bytes,
                            .worker = run.worker};
  };
  for (const auto& round : plan.rounds) {
    for (const auto& transfer : round.receives) {
      HORO_TRY(auto pending, transport.receive(message(transfer)));
      messages.push_back(std::move(pending));
    }
  }
  const auto receives = messages.size();
  std::size_t next = 0;
  for (const auto& round : plan.rounds) {
    for (const auto& transfer : round.sends) {
      HORO_TRY(auto pending, transport.send(message(transfer)));
      messages.push_back(std::move(pending));
    }
    for (std::size_t i = 0; i < round.receives.size(); ++i)
      HORO_TRY_STATUS(messages[next++]->wait());
    for (const auto& one : round.combines) run.combine(one);
  }
  for (auto i = receives; i < messages.size(); ++i) HORO_TRY_STATUS(messages[i]->wait());
  messages.clear();
  return {};
}

}  // namespace horo::runtime
