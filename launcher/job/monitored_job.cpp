// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/monitored_job.hpp"

#include <utility>
#include <vector>

namespace horo::launcher {

namespace {

class FixedJob final : public MonitoredJob {
 public:
  FixedJob(JobDriver& driver, std::string job_id, bool agent_per_rank) : driver_(driver) {
    roster_.job = std::move(job_id);
    const auto& hosts = driver_.state().generation.placement.hosts;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      first_of_host_.push_back(places_.size());
      for (std::size_t r = 0; r < hosts[h].ranks.size(); ++r) {
        if (r == 0 || agent_per_rank) {
          places_.push_back({.host = h, .part = r});
          roster_.agents.push_back({.host = hosts[h].name, .ranks = {}});
        }
        roster_.agents.back().ranks.push_back(hosts[h].ranks[r].value());
      }
    }
  }

  protocol::Roster roster() const override { return roster_; }

  bool ask(std::size_t agent, const Question& question) override {
    return driver_.ask(places_[agent].host, places_[agent].part, question);
  }

  bool is_over(std::size_t agent) const override {
    return driver_.state().generation.host_done[places_[agent].host];
  }

  void on_answer(AnswerHandler handler) override {
    driver_.on_answer([this, handler = std::move(handler)](std::size_t host, std::size_t part,
                                                           const Answer& answer) {
      handler(first_of_host_[host] + part, answer);
    });
  }

  std::optional<Members> members() const override { return std::nullopt; }

  Resized resize(const Resize& /*wish*/) override {
    return {.accepted = false,
            .text =
                "the job is not elastic, so its ranks are fixed; start it with --min-np or "
                "--max-np to change them while it runs"};
  }

 private:
  struct Place {
    std::size_t host = 0;
    std::size_t part = 0;
  };

  JobDriver& driver_;
  protocol::Roster roster_;
  std::vector<Place> places_;  ///< By agent.
  std::vector<std::size_t> first_of_host_;
};

}  // namespace

std::unique_ptr<MonitoredJob> monitored(JobDriver& driver, std::string job_id,
                                        bool agent_per_rank) {
  return std::make_unique<FixedJob>(driver, std::move(job_id), agent_per_rank);
}

}  // namespace horo::launcher
