// SPDX-License-Identifier: Apache-2.0
#include "base/process/kept_program.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace {

using horo::EndingPrograms;
using horo::KeptProgram;

/// A pipe to which programs print.
class Said {
 public:
  Said() {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    read_ = horo::UniqueFd(ends[0]);
    write_ = horo::UniqueFd(ends[1]);
  }

  int end() const { return write_.value(); }

  std::string line() const {
    std::string text;
    for (char c = 0; read(read_.value(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  /// All that follows. Blocks: until no program holds the pipe.
  std::string rest() {
    write_.reset();
    std::string text;
    for (char c = 0; read(read_.value(), &c, 1) == 1;) text += c;
    return text;
  }

 private:
  horo::UniqueFd read_;
  horo::UniqueFd write_;
};

KeptProgram run(const std::vector<std::string>& words, const Said& said, int grace_ms) {
  auto program =
      KeptProgram::start({.words = words, .out = said.end(), .err = 2, .grace_ms = grace_ms});
  REQUIRE(program);
  return std::move(*program);
}

KeptProgram run_script(const std::string& script, const Said& said, int grace_ms = 0) {
  return run({"sh", "-c", "exec 2>/dev/null; " + script}, said, grace_ms);
}

/// An empty folder of this test.
class Folder {
 public:
  Folder() {
    std::string path = "/tmp/horo-kept-XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }

  ~Folder() { std::filesystem::remove_all(path_); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

void await_file(const std::string& path) {
  while (!exists(path)) std::this_thread::yield();
}

}  // namespace

TEST_CASE("what a program leaves is ended though the program has killed its process group") {
  const Folder folder;
  const Said said;
  pid_t left = 0;
  {
    const auto program = run_script(
        fmt::format("setsid sh -c 'echo $$; exec sleep 98765' & until [ -e {} ]; do sleep 0.01;"
                    " done; kill -9 0",
                    folder / "go"),
        said);
    left = std::stoi(said.line());
    std::ofstream(folder / "go").flush();
    const auto status = program.wait_status();
    REQUIRE(status);
    CHECK(WIFSIGNALED(*status));
    REQUIRE(kill(left, 0) == 0);
  }
  CHECK((kill(left, 0) != 0 && errno == ESRCH));
}

TEST_CASE("a program that executes setsid stays the program") {
  const Said said;
  const auto status = run({"setsid", "sh", "-c", "exit 7"}, said, 0).wait_status();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 7);
}

TEST_CASE("a program's children have the grace time that the program does not use") {
  Said said;
  {
    // The wrapper ends by SIGTERM at once. Its child goes on for a while before it says so.
    const auto program = run_script(
        "outer=$$; (trap 'while kill -0 $outer; do :; done 2>/dev/null; n=0;"
        " while [ $n -lt 20 ]; do /bin/true; n=$((n+1)); done; echo passed on; exit' TERM;"
        " echo up; while :; do sleep 0.01; done) & wait",
        said, 60'000);
    REQUIRE(said.line() == "up");
  }
  CHECK(said.rest() == "passed on\n");
}

TEST_CASE("a program that has begun a session has the grace time, too") {
  Said said;
  {
    const auto program =
        run({"setsid", "sh", "-c",
             "trap 'echo asked; exit' TERM; echo up; while :; do sleep 0.01; done"},
            said, 60'000);
    REQUIRE(said.line() == "up");
  }
  CHECK(said.rest() == "asked\n");
}

TEST_CASE("a keeper leaves its parent no process to reap") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  const auto has_children = [] {
    siginfo_t end{};
    return waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
  };
  const Said said;
  REQUIRE_FALSE(has_children());
  CHECK(run_script("exit 3", said).wait_status());
  CHECK_FALSE(has_children());
  { const auto program = run_script("exec sleep 98765", said); }
  CHECK_FALSE(has_children());
  CHECK_FALSE(KeptProgram::start({.words = {"/there/is/no/program"}, .out = said.end(), .err = 2}));
  CHECK_FALSE(has_children());
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

TEST_CASE("a program without grace time is killed at once") {
  Said said;
  {
    const auto program =
        run_script("trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done", said);
    REQUIRE(said.line() == "up");
  }
  CHECK(said.rest().empty());
}

TEST_CASE("programs that end together are all told before one of them has ended") {
  constexpr int kPrograms = 4;
  const Folder folder;
  Said said;
  {
    std::vector<KeptProgram> programs;
    for (int i = 0; i < kPrograms; ++i) {
      programs.push_back(run_script(
          fmt::format("cd {} && trap 'touch told.{}; while [ $(ls | wc -l) != {} ]; do sleep 0.01;"
                      " done; echo ended; exit' TERM; echo up; while :; do sleep 0.01; done",
                      folder / "", i, kPrograms),
          said, 10'000));
      REQUIRE(said.line() == "up");
    }
    EndingPrograms ending;
    for (auto& program : programs) ending.add(std::move(program));
  }
  CHECK(said.rest() == "ended\nended\nended\nended\n");
}

TEST_CASE("an owner whose keeper a stranger has reaped sends no signal to its numbers") {
  const Said said;
  pid_t left = 0;
  {
    const auto program = run_script("sh -c 'echo $$; exec sleep 98765' & wait", said, 60'000);
    left = std::stoi(said.line());
    REQUIRE(kill(program.keeper(), SIGKILL) == 0);
    REQUIRE(waitpid(program.keeper(), nullptr, 0) == program.keeper());
    CHECK(program.is_over());
  }
  CHECK(kill(left, 0) == 0);
  kill(left, SIGKILL);
}

TEST_CASE("programs that are ending are listed until they have ended, and reaped then") {
  const Folder folder;
  const Said said;
  EndingPrograms ending;
  CHECK(ending.keepers().empty());
  auto program =
      run_script(fmt::format("trap 'until [ -e {} ]; do sleep 0.01; done; exit' TERM; echo up;"
                             " while :; do sleep 0.01; done",
                             folder / "go"),
                 said, 60'000);
  REQUIRE(said.line() == "up");
  const pid_t keeper = program.keeper();
  ending.add(std::move(program));
  CHECK(ending.keepers() == std::vector<int>{keeper});
  std::ofstream(folder / "go").flush();
  siginfo_t end{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(keeper), &end, WEXITED | WNOWAIT) == 0);
  CHECK(ending.keepers().empty());
  CHECK((waitpid(keeper, nullptr, WNOHANG) < 0 && errno == ECHILD));
}

namespace {

std::atomic<int> signals_handled{0};

}  // namespace

TEST_CASE("signals while a program ends do not make the owner kill its keeper") {
  struct sigaction counts {};

  counts.sa_handler = [](int) { ++signals_handled; };  // Without SA_RESTART.

  struct sigaction before {};

  REQUIRE(sigaction(SIGUSR1, &counts, &before) == 0);
  const Folder folder;
  Said said;
  std::optional<KeptProgram> program =
      run_script(fmt::format("cd {} && trap 'touch told; while [ ! -e go ]; do sleep 0.01; done;"
                             " echo ended; exit' TERM; echo up; while :; do sleep 0.01; done",
                             folder / ""),
                 said, 60'000);
  REQUIRE(said.line() == "up");
  std::thread signaller([&folder, owner = pthread_self()] {
    await_file(folder / "told");
    // The owner waits for the keeper. Each signal interrupts it once.
    for (int i = 0; i < 100; ++i) {
      const int handled = signals_handled;
      pthread_kill(owner, SIGUSR1);
      while (signals_handled == handled) std::this_thread::yield();
    }
    std::ofstream(folder / "go").flush();
  });
  program.reset();
  signaller.join();
  CHECK(said.rest() == "ended\n");
  sigaction(SIGUSR1, &before, nullptr);
}
