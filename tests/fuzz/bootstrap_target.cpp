// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "base/elastic/membership_messages.hpp"
#include "runtime/bootstrap/local/local_messages.hpp"
#include "runtime/bootstrap/store/host_table.hpp"
#include "runtime/bootstrap/store/store_finder.hpp"

namespace horo::fuzz {

namespace {

using namespace runtime::bootstrap;

constexpr int kSize = 4;

JobHost host(int first) {
  return {.name = "node", .address = "10.0.0.1", .ranks = {Rank{first}, Rank{first + 1}}};
}

std::string failure_of(const Error& error) {
  if (error.code != Errc::protocol && error.code != Errc::version_mismatch)
    return "the error is neither protocol nor version_mismatch";
  return error.message.empty() ? "an error without a message" : "";
}

std::string run_message(std::string_view bytes) {
  const auto message = decode(bytes);
  if (!message) return failure_of(message.error());
  if (std::holds_alternative<LocalRefusal>(*message))
    return std::get<LocalRefusal>(*message).code == Errc::ok ? "a refusal that is a success" : "";
  return encode(*message) == bytes ? "" : "a decoded message encodes to other bytes";
}

std::string run_table(std::string_view bytes) {
  const auto table = decode_table(bytes, kSize);
  if (!table) return failure_of(table.error());
  std::size_t ranks = 0;
  for (const auto& entry : table->hosts) ranks += entry.ranks.size();
  return ranks == kSize ? "" : "the table has too many or too few ranks";
}

std::string run_card(std::string_view bytes) {
  const auto card = decode_host_report(bytes);
  if (!card) return failure_of(card.error());
  return card->host.ranks.empty() ? "a host without ranks" : "";
}

std::string run_place(std::string_view bytes) {
  const auto place = decode_local_position(bytes);
  if (!place) return failure_of(place.error());
  return place->local_rank < place->local_size ? "" : "the local rank is outside its host";
}

std::string run_word(std::string_view text) {
  const auto word = decode_store_contact(text);
  return word ? "" : failure_of(word.error());
}

std::string run_call(std::string_view bytes) {
  const auto call = elastic::decode_call(bytes);
  if (!call) return failure_of(call.error());
  return encode(*call) == bytes ? "" : "a decoded call encodes to other bytes";
}

std::string run_membership(std::string_view bytes) {
  const auto answer = elastic::decode_answer(bytes);
  if (!answer) return failure_of(answer.error());
  if (answer->kind == elastic::MembershipKind::member && answer->rank >= answer->size)
    return "a member whose rank is outside of the job";
  return encode(*answer) == bytes ? "" : "a decoded answer encodes to other bytes";
}

std::string run_resumed(std::string_view bytes) {
  const auto resumed = elastic::decode_resumed(bytes);
  if (!resumed) return failure_of(resumed.error());
  return encode(*resumed) == bytes ? "" : "a decoded word encodes to other bytes";
}

const std::vector<std::string> kWords{std::string(4, '\0'), std::string(4, '\xff'), "HOMT"};

std::vector<Target> elastic_targets() {
  return {
      {.name = "elastic-resumed",
       .run = run_resumed,
       .seeds = {encode(elastic::TrainingResumed{.worker = 3, .generation = 5, .repeated = 1})},
       .words = kWords,
       .rounds = 10000},
      {.name = "elastic-call",
       .run = run_call,
       .seeds = {encode(elastic::MembershipCall{.worker = 3, .attempt = 2, .generation = 5})},
       .words = kWords,
       .rounds = 10000},
      {.name = "elastic-answer",
       .run = run_membership,
       .seeds = {encode(elastic::MembershipAnswer{.generation = 2, .rank = 1, .size = 3}),
                 encode(elastic::MembershipAnswer{.kind = elastic::MembershipKind::refused,
                                                  .reason = "no"})},
       .words = kWords,
       .rounds = 30000},
  };
}

std::vector<Target> meeting_targets() {
  return {
      {.name = "meeting-message",
       .run = run_message,
       .seeds = {encode(LocalHello{
                     .version = 1, .rank = 1, .size = 4, .local_rank = 1, .local_size = 2}),
                 encode(LocalWelcome{.nonce = 1, .epoch = 2, .ranks = {0, 1, 2}}),
                 encode(LocalRefusal{.code = Errc::timed_out, .message = "late"})},
       .words = kWords,
       .rounds = 30000},
      {.name = "host-table",
       .run = run_table,
       .seeds = {encode(HostTable{.epoch = 1, .hosts = {host(0), host(2)}})},
       .words = kWords,
       .rounds = 30000},
      {.name = "host-card",
       .run = run_card,
       .seeds = {encode(HostReport{.host = host(0), .server_host = "10.0.0.9"})},
       .words = kWords,
       .rounds = 30000},
      {.name = "local-place",
       .run = run_place,
       .seeds = {encode(LocalPosition{.local_rank = 1, .local_size = 2})},
       .words = kWords,
       .rounds = 10000},
      {.name = "store-word",
       .run = run_word,
       .seeds = {encode(StoreContact{.secret = {1}, .machine = "m", .addresses = {"1.1.1.1:1"}})},
       .words = {",", "horo1", "ff"},
       .rounds = 30000},
  };
}

}  // namespace

std::vector<Target> bootstrap_targets() {
  auto targets = meeting_targets();
  for (auto& target : elastic_targets()) targets.push_back(std::move(target));
  return targets;
}

}  // namespace horo::fuzz
