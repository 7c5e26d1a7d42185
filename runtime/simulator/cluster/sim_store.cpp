// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/sim_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace horo::runtime::sim {

namespace {

constexpr std::size_t kFrame = kv::kLengthBytes + kv::kTagBytes;
constexpr double kSealedPerSecond = 1e9;  // Bytes that the server copies and signs.

}  // namespace

TimePoint SimStore::work(std::size_t bytes) {
  const auto& model = network_.model();
  const auto copies = static_cast<double>(bytes) / kSealedPerSecond * 1e9;
  const auto cost =
      model.receive_cost + model.send_cost + Duration(static_cast<Duration::rep>(copies));
  busy_until_ = std::max(busy_until_, network_.now()) + cost;
  counters_.busy += cost;
  return busy_until_;
}

void SimStore::request(Waiting call) {
  const auto bytes = encode(call.request).value().size() + kFrame;
  counters_.bytes_in += bytes;
  ++counters_.requests;
  network_.carry(call.from, host_, bytes, network_.now() + network_.model().send_cost,
                 [this, bytes, call = std::move(call)]() mutable {
                   network_.at(work(bytes),
                               [this, call = std::move(call)]() mutable { handle(call); });
                 });
}

kv::Response SimStore::call(int from, kv::Request request) {
  kv::Response response;
  this->request({from, std::move(request), &response, Fiber::current()});
  Fiber::pause();
  return response;
}

kv::Response SimStore::call_after(int from, kv::Request first, kv::Request request) {
  kv::Response response;
  const auto bytes = encode(first).value().size() + encode(request).value().size() + 2 * kFrame;
  counters_.bytes_in += bytes;
  counters_.requests += 2;
  const std::array calls{Waiting{.from = from, .request = std::move(first)},
                         Waiting{from, std::move(request), &response, Fiber::current()}};
  network_.carry(from, host_, bytes, network_.now() + network_.model().send_cost,
                 [this, bytes, calls] {
                   network_.at(work(bytes), [this, calls] {
                     for (const auto& call : calls) handle(call);
                   });
                 });
  Fiber::pause();
  return response;
}

void SimStore::send(int from, kv::Request request) {
  this->request({.from = from, .request = std::move(request)});
}

void SimStore::intercept(std::string prefix, std::function<void(std::string_view value)> handler) {
  intercepted_ = std::move(prefix);
  handler_ = std::move(handler);
}

void SimStore::set(const std::string& key, std::string value) {
  HORO_CHECK(table_.set(key, std::move(value)));
  auto waiting = waiting_.extract(key);
  if (!waiting) return;
  // Nothing has come over a connection, so the answers are all that the server works for.
  for (auto& call : waiting.mapped()) handle(std::move(call));
}

void SimStore::connect(int from) {
  auto* const fiber = Fiber::current();
  counters_.bytes_in += kv::kHelloBytes + kv::kProofBytes;
  counters_.bytes_out += kv::kChallengeBytes + kv::kWelcomeBytes;
  const auto trip = [&](std::size_t there, std::size_t back) {
    network_.carry(from, host_, there, network_.now(), [=, this] {
      network_.at(work(there), [=, this] {
        network_.carry(host_, from, back, network_.now(), [fiber] { fiber->resume(); });
      });
    });
    Fiber::pause();
  };
  trip(0, 0);  // The connection itself.
  trip(kv::kHelloBytes, kv::kChallengeBytes);
  trip(kv::kProofBytes, kv::kWelcomeBytes);
}

void SimStore::handle(Waiting call) {
  kv::Response response{.op = call.request.op};
  const auto& key = call.request.keys.front();
  std::size_t value = 0;
  switch (call.request.op) {
    case kv::Op::set:
      if (!intercepted_.empty() && key.starts_with(intercepted_)) {
        handler_(call.request.value);
        break;
      }
      if (auto status = table_.set(key, std::move(call.request.value)); !status)
        response = {.status = status.error().code, .value = status.error().message};
      break;
    case kv::Op::get:
      if (const auto found = table_.find(key)) {
        response.value = *found;
        value = found->size();
        break;
      }
      waiting_[key].push_back(std::move(call));
      return;
    case kv::Op::add:
      response.number = table_.add(key, call.request.delta).value();
      break;
    case kv::Op::erase:
      response.number = static_cast<std::int64_t>(table_.erase(call.request.keys));
      break;
    case kv::Op::find:
    case kv::Op::wait:
    case kv::Op::missing:
    case kv::Op::compare_and_set:
      HORO_CHECK(false);
  }
  counters_.most_keys = std::max(counters_.most_keys, table_.keys());
  const auto made = call.request.op == kv::Op::set ? key : std::string();
  answer(call, std::move(response), value);
  if (!made.empty()) wake(made);
}

void SimStore::wake(const std::string& key) {
  auto waiting = waiting_.extract(key);
  if (!waiting) return;
  for (auto& call : waiting.mapped())
    network_.at(work(0), [this, call = std::move(call)]() mutable { handle(std::move(call)); });
}

void SimStore::answer(const Waiting& call, kv::Response response, std::size_t value_bytes) {
  const auto bytes = encode_head(response, value_bytes).size() + value_bytes + kFrame;
  counters_.bytes_out += bytes;
  if (call.response != nullptr) *call.response = std::move(response);
  network_.carry(host_, call.from, bytes, work(value_bytes), [fiber = call.fiber] {
    if (fiber != nullptr) fiber->resume();
  });
}

Status SimStoreClient::set(std::string_view key, std::string_view value, Deadline /*deadline*/) {
  own_.emplace_back(key);
  const auto response =
      store_.call(host_, {.op = kv::Op::set, .keys = {own_.back()}, .value = std::string(value)});
  if (response.status == Errc::ok) return {};
  return fail(response.status, "{}", response.value);
}

Result<std::string> SimStoreClient::get(std::string_view key, Deadline /*deadline*/) {
  return store_.call(host_, {.op = kv::Op::get, .keys = {std::string(key)}}).value;
}

Result<std::int64_t> SimStoreClient::add(std::string_view key, std::int64_t delta,
                                         Deadline /*deadline*/) {
  return store_.call(host_, {.op = kv::Op::add, .keys = {std::string(key)}, .delta = delta}).number;
}

Result<std::int64_t> SimStoreClient::erase(std::span<const std::string> keys,
                                           Deadline /*deadline*/) {
  return store_.call(host_, {.op = kv::Op::erase, .keys = {keys.begin(), keys.end()}}).number;
}

}  // namespace horo::runtime::sim
