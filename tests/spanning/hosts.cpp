// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/hosts.hpp"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <unistd.h>

#include "tests/spanning/thread_limit.hpp"

namespace horo::spanning {

using runtime::Session;

namespace {

/// Session::join() with the exception that horo_init turns into an error.
Result<std::unique_ptr<Session>> join_or_say(runtime::bootstrap::Meeting meeting,
                                             const runtime::SessionOptions& options) {
  try {
    return Session::join(std::move(meeting), options);
  } catch (const std::system_error& error) {
    return fail(Errc::resource_exhausted, "{}", error.code().message());
  }
}

}  // namespace

TestHosts::TestHosts(Layout layout) : layout_(std::move(layout)) {
  for (const auto& ranks : layout_) size_ += static_cast<int>(ranks.size());
  options.board = sim::tight_params();
  options.hosts.tree_radix = 2;
  if (is_one_of_many()) {
    options.start_timeout = options.hosts.connect.start_timeout = patience();
    options.hosts.heartbeat_timeout = options.hosts.connect.gloo_timeout = patience();
    // A check for stalls wakes threads, and would hide that they were not woken in time.
    options.stalls.warning = Duration::zero();
  }
  options.hosts.connect.modules = HORO_TEST_MODULES;
}

runtime::bootstrap::Meeting TestHosts::meeting(int rank) const {
  runtime::bootstrap::Meeting meeting;
  meeting.epoch = epoch_;
  for (std::size_t h = 0; h < layout_.size(); ++h) {
    runtime::bootstrap::JobHost host{.name = fmt::format("node{}", h), .address = "127.0.0.1"};
    for (const int r : layout_[h]) host.ranks.emplace_back(r);
    const auto at = std::find(layout_[h].begin(), layout_[h].end(), rank);
    if (at != layout_[h].end()) {
      meeting.identity = {.rank = Rank{rank},
                          .size = size_,
                          .local_rank = LocalRank{static_cast<int>(at - layout_[h].begin())},
                          .local_size = static_cast<int>(layout_[h].size()),
                          .host_index = static_cast<int>(h)};
      meeting.board = UniqueFd(dup(boards_[h].value()));
    }
    meeting.hosts.push_back(std::move(host));
  }
  meeting.store = std::make_shared<runtime::bootstrap::JobStore>();
  meeting.store->address = server_.address();
  meeting.store->secret = server_.secret;
  return meeting;
}

void TestHosts::begin_epoch() {
  epoch_ = Epoch{epoch_.value() + 1};
  boards_.clear();
  failed_ = false;
  for (const auto& ranks : layout_) {
    boards_.emplace_back(
        *make_board({.local_size = static_cast<int>(ranks.size()), .nonce = 1, .epoch = epoch_}));
  }
}

void TestHosts::run_raw(const std::function<void(std::unique_ptr<Session>, int)>& body) {
  begin_epoch();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    threads.emplace_back([&, r] {
      auto session = Session::join(meeting(r), options);
      if (session) {
        body(std::move(*session), r);
      } else {
        errors[static_cast<std::size_t>(r)] = session.error().message;
        failed_ = true;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) CHECK(error == "");
}

std::string TestHosts::fail_to_start(const BadStart& start) {
  options.start_timeout = options.hosts.connect.start_timeout = std::chrono::milliseconds(500);
  begin_epoch();
  const auto is_in = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  std::mutex mutex;
  std::string first;
  std::vector<std::thread> threads;
  for (int r = 0; r < size_; ++r) {
    if (is_in(start.absent, r)) continue;
    threads.emplace_back([&, r] {
      if (is_in(start.late, r)) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (r == 0) threads_left = start.threads;
      const auto session = join_or_say(meeting(r), options);
      const std::lock_guard lock(mutex);
      if (!first.empty()) return;
      first = fmt::format("rank {}: {}", r, session ? "it has started" : session.error().message);
      for (std::size_t h = 0; h < layout_.size(); ++h)
        poison(static_cast<int>(h), {.rank = Rank{r}, .cause = LossCause::exited, .detail = 1});
    });
  }
  for (auto& thread : threads) thread.join();
  return first;
}

void TestHosts::run(const std::function<void(Session&, int)>& body) {
  run_raw([&body](std::unique_ptr<Session> session, int rank) {
    body(*session, rank);
    session->shutdown();
  });
}

void TestHosts::poison(int host, const Poison& poison) {
  const auto header = *map_board_header(boards_[static_cast<std::size_t>(host)].value());
  poison_board(header, poison, fmt::format("node{}", host));
  unmap_board_header(header);
}

bool wait_for(Session& session, runtime::Operation& operation) {
  // The end of a slice would hide a wake-up that was lost; the watchdog ends a run that hangs.
  if (is_one_of_many()) return session.wait(operation, Deadline::never());
  // In slices, so that time during which the process was stopped does not count: a test that gives
  // up frees memory that its peers still use.
  constexpr Duration kSlice = std::chrono::seconds(1);
  for (auto left = patience(); left > Duration::zero(); left -= kSlice) {
    if (session.wait(operation, Deadline::in(SteadyClock::instance(), kSlice))) return true;
  }
  return false;
}

std::string sum(Session& session, SetId set, const std::string& name, std::int64_t count,
                int ranks) {
  const auto id = session.declare(
      set, name, sim::vector_of(runtime::Kind::allreduce, runtime::DType::i32, count));
  if (!id) return id.error().message;
  std::vector<std::int32_t> values(static_cast<std::size_t>(count), 1);
  const auto operation = session.submit(set, *id, {.in = values.data(), .out = values.data()});
  if (!operation) return operation.error().message;
  if (!wait_for(session, **operation)) return "it hangs";
  const auto status = (*operation)->status();
  const auto message = (*operation)->message();
  session.operations().put(**operation);
  if (status != Errc::ok) return message;
  for (const auto value : values) {
    if (value != ranks) return fmt::format("{} instead of {}", value, ranks);
  }
  return {};
}

}  // namespace horo::spanning
