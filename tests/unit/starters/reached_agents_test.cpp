// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/reached_agents.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

/// A carrier whose stream stays open when it is given up.
class StuckCarrier final : public Carrier {
 public:
  explicit StuckCarrier(Loop& loop) : loop_(loop) {}

  Status open(Handlers handlers) override {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    ours_ = UniqueFd(ends[0]);
    theirs_ = UniqueFd(ends[1]);
    handlers_ = std::move(handlers);
    loop_.post([this] { handlers_.on_open({.descriptor = ours_.value()}); });
    return {};
  }

  void hang_up() override {}

  void give_up() override {
    loop_.post([this] {
      if (const auto handler = std::exchange(handlers_.on_gone, nullptr))
        handler({Errc::cancelled, "given up"});
    });
  }

  CarrierStatus status() const override { return {}; }

 private:
  Loop& loop_;
  Handlers handlers_;
  UniqueFd ours_, theirs_;
};

}  // namespace

TEST_CASE("a program that is ending is one of the processes that are spared") {
  auto loop = Loop::make().value();
  const auto ending = std::make_shared<EndingPrograms>();
  const auto agents = make_child_agents(*loop, {}, {}, ending);
  CHECK(agents->processes().empty());
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd said(ends[0]);
  const UniqueFd out(ends[1]);
  // It ignores SIGTERM, so it lasts for the grace time.
  auto program = KeptProgram::start({.words = {"sh", "-c", "trap '' TERM; echo; exec sleep 98765"},
                                     .out = out.value(),
                                     .err = 2,
                                     .grace_ms = 60'000});
  REQUIRE(program);
  char line = 0;
  REQUIRE(read(said.value(), &line, 1) == 1);
  const pid_t keeper = program->keeper();
  ending->add(std::move(*program));
  CHECK(agents->processes() == std::vector<int>{keeper});
  kill(keeper, SIGKILL);
}

TEST_CASE("a host that is given up is gone even if its stream stays open") {
  auto loop = Loop::make().value();
  std::vector<std::uint32_t> gone;
  const auto agents =
      make_child_agents(*loop,
                        {.send =
                             [&](const protocol::Message& message) {
                               if (const auto* told = std::get_if<protocol::Gone>(&message))
                                 gone.push_back(told->host);
                             },
                         .on_empty = [&] { loop->stop(); }},
                        [&](const protocol::Reach&) -> Result<std::unique_ptr<Carrier>> {
                          return std::unique_ptr<Carrier>(std::make_unique<StuckCarrier>(*loop));
                        });
  protocol::Reach reach;
  reach.host = 3;
  agents->take(reach);
  loop->post([&] { agents->take(protocol::Leave{3, true}); });
  const auto limit = loop->after(20s, [&] { loop->stop(); });
  loop->run();
  CHECK(gone == std::vector<std::uint32_t>{3});
  CHECK(agents->empty());
}
