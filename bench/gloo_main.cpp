// SPDX-License-Identifier: Apache-2.0
// The Gloo library over loopback TCP, its only transport on one host, with gloo::allreduce's ring.
// Gloo has no asynchronous calls, so several tensors are summed one after another. The program
// starts its own ranks.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/harness.hpp"

namespace horo::bench {
namespace {

class GlooContender final : public Contender {
 public:
  GlooContender(int rank, int ranks, const std::string& meeting_place)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, ranks)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(meeting_place);
    context_->connectFullMesh(store, device);
  }

  int rank() const override { return context_->rank; }

  int ranks() const override { return context_->size; }

  Status prepare(const Workload& workload) override {
    tensors_.clear();
    for (const std::size_t count : workload.counts) tensors_.emplace_back(count);
    return {};
  }

  std::span<float> tensor(std::size_t index) override { return tensors_[index]; }

  Status step() override {
    for (auto& tensor : tensors_) {
      gloo::AllreduceOptions options(context_);
      options.setOutput(tensor.data(), tensor.size());
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
      options.setReduceFunction(sum);
      gloo::allreduce(options);
    }
    return {};
  }

  std::optional<std::uint64_t> entries() const override { return std::nullopt; }

 private:
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<std::vector<float>> tensors_;
};

Status run_rank(int rank, const Options& options, const std::string& meeting_place) {
  try {
    GlooContender contender(rank, options.ranks, meeting_place);
    return run_cases(contender, options);
  } catch (const std::exception& error) {
    return fail(Errc::io, "rank {}: {}", rank, error.what());
  }
}

Status run(int argc, char** argv) {
  HORO_TRY(const Options options, parse_options(argc, argv));
  std::string meeting_place = std::filesystem::temp_directory_path() / "horo_bench_gloo_XXXXXX";
  if (mkdtemp(meeting_place.data()) == nullptr)
    return fail_errno(errno, "mkdtemp in the temporary directory");
  for (int rank = 1; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) return fail_errno(errno, "fork");
    if (child == 0) _exit(exit_code_of(run_rank(rank, options, meeting_place), "bench_gloo"));
  }
  Status result = run_rank(0, options, meeting_place);
  int how = 0;
  while (wait(&how) > 0) {
    if (how != 0 && result) result = fail(Errc::peer_lost, "a rank ended with wait status {}", how);
  }
  std::error_code ignored;  // a temporary directory left behind does no harm
  std::filesystem::remove_all(meeting_place, ignored);
  return result;
}

}  // namespace
}  // namespace horo::bench

int main(int argc, char** argv) {
  return horo::bench::exit_code_of(horo::bench::run(argc, argv), "bench_gloo");
}
