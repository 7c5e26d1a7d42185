// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_starter.hpp"

#include <utility>

#include "launcher/mpi/mpi_run.hpp"

namespace horo::launcher {

namespace {

class HostOfRun final : public Agent {
 public:
  HostOfRun(std::shared_ptr<MpiRun> run, std::size_t host) : run_(std::move(run)), host_(host) {}

  ~HostOfRun() override { run_->forget(host_); }

  void signal(int number) override { run_->signal(host_, number); }

  void stop(const Poison& cause, std::string_view host) override { run_->stop(host_, cause, host); }

  void kill() override { run_->kill(host_); }

  void feed_stdin(std::string_view bytes) override { run_->feed_stdin(bytes); }

  void close_stdin() override { run_->close_stdin(); }

  void output_taken(Rank rank, std::size_t bytes) override { run_->output_taken(rank, bytes); }

  bool ask(std::size_t part, const Question& question) override {
    return run_->ask(host_, part, question);
  }

 private:
  const std::shared_ptr<MpiRun> run_;
  const std::size_t host_;
};

class MpiStarter final : public Starter {
 public:
  MpiStarter(Loop& loop, MpiLaunch launch)
      : run_(std::make_shared<MpiRun>(loop, std::move(launch))) {}

  std::string_view name() const override { return "mpirun"; }

  Status probe() const override { return run_->probe(); }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    const auto host = run_->add_host(spec, events);
    return std::unique_ptr<Agent>(std::make_unique<HostOfRun>(run_, host));
  }

 private:
  const std::shared_ptr<MpiRun> run_;
};

}  // namespace

std::unique_ptr<Starter> make_mpi_starter(Loop& loop, MpiLaunch launch) {
  return std::make_unique<MpiStarter>(loop, std::move(launch));
}

}  // namespace horo::launcher
