// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/resolver.hpp"

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <netdb.h>
#include <pthread.h>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/signals_blocked.hpp"

namespace horo::launcher {

namespace {

constexpr int kMostThreads = 16;

Result<std::vector<Endpoint>> look_up(const std::string& name, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0)
    return fail(Errc::not_found, "the name '{}' has no address: {}", name, gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const auto* entry = found; entry != nullptr; entry = entry->ai_next) {
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, entry->ai_addr, entry->ai_addrlen);
    endpoint.size = entry->ai_addrlen;
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0)
      endpoint.address = text.data();
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace

class Resolver::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(Loop& loop) : loop_(&loop) {}

  void add(std::string name, std::uint16_t port, Answer answer) {
    const MutexLock lock(mutex_);
    questions_.push_back({std::move(name), port, std::move(answer)});
    if (idle_ == 0 && threads_ < kMostThreads) start_thread();
    changed_.notify_one();
  }

  void abandon() {
    const MutexLock lock(mutex_);
    loop_ = nullptr;
    questions_.clear();
    changed_.notify_all();
  }

 private:
  struct Question {
    std::string name;
    std::uint16_t port = 0;
    Answer answer;
  };

  void start_thread() HORO_REQUIRES(mutex_) {
    ++threads_;
    start_quiet_thread([self = shared_from_this()] { self->work(); }).detach();
  }

  void work() {
    MutexLock lock(mutex_);
    for (;;) {
      ++idle_;
      while (loop_ != nullptr && questions_.empty()) lock.wait(changed_);
      --idle_;
      if (loop_ == nullptr) return;
      auto question = std::move(questions_.front());
      questions_.pop_front();
      lock.unlock();
      auto found = look_up(question.name, question.port);
      lock.lock();
      if (loop_ == nullptr) return;
      loop_->post([self = shared_from_this(), answer = std::move(question.answer),
                   found = std::move(found)] {
        if (!self->is_abandoned()) answer(found);
      });
    }
  }

  bool is_abandoned() {
    const MutexLock lock(mutex_);
    return loop_ == nullptr;
  }

  Mutex mutex_;
  std::condition_variable changed_;
  /// Null once answers are dropped. Changes on the loop's thread only.
  Loop* loop_ HORO_GUARDED_BY(mutex_);
  std::deque<Question> questions_ HORO_GUARDED_BY(mutex_);
  int threads_ HORO_GUARDED_BY(mutex_) = 0;
  int idle_ HORO_GUARDED_BY(mutex_) = 0;
};

Resolver::Resolver(Loop& loop) : state_(std::make_shared<State>(loop)) {}

Resolver::~Resolver() {
  state_->abandon();
}

void Resolver::resolve(std::string name, std::uint16_t port, Answer answer) {
  state_->add(std::move(name), port, std::move(answer));
}

}  // namespace horo::launcher
