// SPDX-License-Identifier: Apache-2.0
// Plays a rank: each argument is one thing to do, in order.
//   say=TEXT  err=TEXT  exit=N  die=SIGNAL  stop  wait  ignore-term  fork  escape  close-out
//   flood=BYTES  fds  echo  env=NAME  attach  detach  leave  ack  only=RANK  limit  orphans
//   await-poison  await-notice  eat=MEGABYTES  move-on  vanish  headless
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/board_header.hpp"

namespace {

using horo::RankState;

int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

horo::BoardHeader& board() {
  static const horo::BoardView header = [] {
    auto mapped = horo::map_board_header(number("HORO_BOARD_FD"));
    HORO_CHECK(mapped.has_value());
    HORO_CHECK((*mapped)->nonce == std::strtoull(std::getenv("HORO_BOARD_NONCE"), nullptr, 10));
    return *mapped;
  }();
  return *header;
}

horo::RankSlot& slot() {
  const int given = number("HORO_BOARD_SLOT");
  return board().slot(horo::LocalRank{given >= 0 ? given : number("HORO_LOCAL_RANK")});
}

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

void say(std::string_view text) {
  const auto put = write(STDOUT_FILENO, text.data(), text.size());
  HORO_CHECK(put == static_cast<ssize_t>(text.size()));
}

/// Makes a grandchild in its own session whose parent has ended, so that neither a process group
/// nor a parent leads to it.
void escape() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      signal(SIGTERM, SIG_IGN);
      wait_for_ever();
    }
    _exit(0);
  }
  wait(nullptr);
}

/// As escape, and its environment does not name the job either. Prints its pid.
void vanish() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      say(std::to_string(getpid()) + " ");
      char* const arguments[] = {const_cast<char*>("vanished"), const_cast<char*>("ignore-term"),
                                 const_cast<char*>("close-out"), const_cast<char*>("wait"),
                                 nullptr};
      char* const nothing[] = {nullptr};
      execve("/proc/self/exe", arguments, nothing);
    }
    _exit(0);
  }
  wait(nullptr);
}

/// Makes a child in its own session whose first thread has ended: /proc shows a zombie. Prints its
/// pid.
void headless() {
  if (fork() != 0) return;
  setsid();
  signal(SIGTERM, SIG_IGN);
  std::thread([first = pthread_self()] {
    pthread_join(first, nullptr);
    say(std::to_string(getpid()) + " ");
    wait_for_ever();
  }).detach();
  pthread_exit(nullptr);
}

/// Makes grandchildren that end at once and are adopted by the subreaper.
void make_orphans() {
  for (int i = 0; i < 50; ++i) {
    if (fork() == 0) _exit(fork() == 0 ? 0 : 1);
    wait(nullptr);
  }
}

/// Makes a process whose pid changes all the time: every generation forks the next and ends. Lasts
/// five seconds.
void move_on() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  if (fork() != 0) return;
  setsid();
  while (std::chrono::steady_clock::now() < until) {
    if (fork() != 0) _exit(0);
  }
  _exit(0);
}

void flood(long long bytes) {
  const std::string block(65536, 'x');
  while (bytes > 0) {
    const auto want = std::min<long long>(bytes, static_cast<long long>(block.size()));
    const auto put = write(STDOUT_FILENO, block.data(), static_cast<std::size_t>(want));
    if (put <= 0) _exit(9);
    bytes -= put;
  }
}

void list_descriptors() {
  std::vector<int> open;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(folder))
      open.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  std::sort(open.begin(), open.end());
  for (const int fd : open) say(std::to_string(fd) + " ");
}

void echo() {
  char block[4096];
  for (ssize_t got = 0; (got = read(STDIN_FILENO, block, sizeof(block))) > 0;) {
    say({block, static_cast<std::size_t>(got)});
  }
}

void await_poison() {
  while (horo::poison_of(board()).cause == horo::LossCause::none) {
    horo::BellSleeper sleeper(slot().bell, horo::Sleeper::caller);
    if (horo::poison_of(board()).cause == horo::LossCause::none)
      sleeper.sleep(horo::Duration::max());
  }
  say(std::string(board().poison_host.data()) + ": rank " +
      std::to_string(horo::poison_of(board()).rank.value()) + " " +
      horo::describe(horo::poison_of(board())));
}

void await_notice() {
  while (horo::notice_of(board()).sequence == 0) {
    horo::BellSleeper sleeper(slot().bell, horo::Sleeper::caller);
    if (horo::notice_of(board()).sequence == 0) sleeper.sleep(horo::Duration::max());
  }
  const auto notice = horo::notice_of(board());
  say(std::to_string(notice.sequence) + " " + std::to_string(notice.flags));
}

void simple(std::string_view action) {
  if (action == "wait") wait_for_ever();
  if (action == "stop") raise(SIGSTOP);
  if (action == "ignore-term") signal(SIGTERM, SIG_IGN);
  if (action == "fork" && fork() == 0) wait_for_ever();
  if (action == "escape") escape();
  if (action == "vanish") vanish();
  if (action == "headless") headless();
  if (action == "move-on") move_on();
  if (action == "orphans") make_orphans();
  if (action == "close-out") {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
  }
  if (action == "fds") list_descriptors();
  if (action == "echo") echo();
  if (action == "attach") slot().state.store(RankState::attached);
  if (action == "leave") slot().state.store(RankState::leaving);
  if (action == "detach") slot().state.store(RankState::detached);
  if (action == "await-poison") await_poison();
  if (action == "await-notice") await_notice();
  if (action == "overwrite-size") board().local_size = 0xffffffffU;
  if (action == "shrink-board" && ftruncate(number("HORO_BOARD_FD"), 0) == 0) say("shrunk");
  if (action == "ack") slot().poison_ack.store(1);
  if (action == "limit") {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    say(std::to_string(limit.rlim_cur));
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    const auto equals = argument.find('=');
    if (equals == std::string_view::npos) {
      simple(argument);
      continue;
    }
    const auto action = argument.substr(0, equals);
    const std::string value(argument.substr(equals + 1));
    if (action == "only" && number("HORO_RANK") != std::atoi(value.c_str()))
      ++i;  // Other ranks skip the next argument.
    if (action == "say") say(value);
    if (action == "err") std::fputs(value.c_str(), stderr);
    if (action == "env")
      say(std::getenv(value.c_str()) == nullptr ? "(unset)" : std::getenv(value.c_str()));
    if (action == "flood") flood(std::atoll(value.c_str()));
    if (action == "eat") {
      const auto size = static_cast<std::size_t>(std::atoll(value.c_str())) << 20U;
      auto* memory = static_cast<volatile char*>(std::malloc(size));
      for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
    }
    if (action == "exit") _exit(std::atoi(value.c_str()));
    if (action == "die") {
      const rlimit none{};
      setrlimit(RLIMIT_CORE, &none);
      raise(std::atoi(value.c_str()));
    }
  }
  return 0;
}
