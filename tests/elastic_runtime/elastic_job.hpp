// SPDX-License-Identifier: Apache-2.0
// The part of a launcher and an agent that workers of an elastic job see: the board, the store and
// the answers to their calls. The test chooses the members of a generation.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/board_header.hpp"
#include "base/elastic/membership_messages.hpp"
#include "base/kv/client.hpp"
#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "base/worker_env.hpp"

namespace elastic_test {

using Clock = std::chrono::steady_clock;

/// The store of a launcher, on a thread of its own.
class Store {
 public:
  Store();

  ~Store() { stop(); }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void stop();  ///< All connections are closed.

  /// For this time nobody is answered. New connections are made all the same, by the kernel.
  void be_busy(horo::Duration time);

  std::vector<std::string> keys();

  const std::string& address() const { return address_; }

  const horo::kv::Secret& secret() const { return secret_; }

 private:
  horo::kv::Secret secret_;
  std::unique_ptr<horo::Loop> loop_;
  std::unique_ptr<horo::kv::Server> server_;
  std::string address_;
  std::thread thread_;
};

/// A process. The destructor kills it.
class Worker {
 public:
  Worker(int number, const horo::Environment& environment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void tell(const std::string& line) const;
  /// The next line of its output; "(nothing)" after 30 s or at its end.
  std::string hear();
  std::string ask(const std::string& line);
  void kill(int signal) const;
  int wait();  ///< Its exit code, or 128 + signal.

  const int number;

 private:
  int pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string heard_;
};

/// A member of a generation.
struct Member {
  int worker = 0;
  int host = 0;
};

class Job {
 public:
  explicit Job(int slots, horo::Environment extra = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Starts the next worker. It is told to do nothing yet.
  Worker& start();

  Worker& operator[](int worker) { return *workers_.at(static_cast<std::size_t>(worker)); }

  /// The worker's call, if there is one.
  std::optional<horo::elastic::MembershipCall> take_call(int worker);
  /// Waits until the worker has called; returns the call.
  horo::elastic::MembershipCall await_call(int worker);
  void answer(const horo::elastic::MembershipCall& call,
              const horo::elastic::MembershipAnswer& answer);
  /// The answer for one of the members, in rank order.
  horo::elastic::MembershipAnswer answer_for(const std::vector<Member>& members, int worker,
                                             int survivors) const;
  /// Waits for the calls of all members and makes them the next generation.
  void form(const std::vector<Member>& members, int survivors, std::uint64_t notice = 0);

  /// The next generation's number is taken without anyone in it, or for answers given by hand.
  std::uint64_t begin() { return ++generation_; }

  void give_up() { set(horo::elastic::over_key(generation_), ""); }

  std::uint64_t generation() const { return generation_; }

  /// Starts workers and has them enter the first generation.
  void begin_with(const std::vector<int>& hosts);
  /// Tells all of them the same and expects one answer from each.
  void all(const std::vector<int>& workers, const std::string& line, const std::string& answer);

  void set(const std::string& key, const std::string& value);

  horo::BoardView board() const { return board_; }

  horo::RankState state_of(int slot) const;
  Store store;

 private:
  horo::Environment extra_;
  int fd_ = -1;
  horo::BoardView board_;
  std::unique_ptr<horo::kv::Client> client_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t generation_ = 0;
};

}  // namespace elastic_test
