// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launcher/elastic/driver/elastic_driver.hpp"
#include "launcher/job/monitored_job.hpp"

namespace horo::launcher {

/// The members of an elastic job at one moment, for people. Pure.
timeline::LiveMembership describe_members(const MembershipState& state, TimePoint now);

/// An elastic job. The hosts of MembershipState are its agents. `driver` outlives it.
std::unique_ptr<MonitoredJob> monitored(ElasticDriver& driver, std::string job_id);

}  // namespace horo::launcher
