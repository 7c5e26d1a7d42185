// SPDX-License-Identifier: Apache-2.0
#include "trainees.hpp"

#include <array>
#include <map>

namespace horo::sim {

using runtime::sim::SimRecord;
using runtime::sim::World;
using runtime::tree::LogKind;

runtime::Signature vector_of(runtime::Kind kind, std::int64_t count) {
  runtime::Signature signature{.kind = kind};
  const std::array shape{count};
  HORO_CHECK(runtime::set_shape(signature, shape).has_value());
  return signature;
}

void Trainees::submit(const std::vector<Plan>& plans, Duration spread) {
  auto& network = world_.network();
  const auto most = static_cast<std::uint64_t>(spread.count()) + 1;
  for (int r = 0; r < world_.size(); ++r) {
    for (const auto& plan : plans) {
      const auto host = world_.host_of(Rank{r});
      if (!world_.has_log(host, plan.set) || !world_.log(host, plan.set).has_member(Rank{r}))
        continue;
      network.after(Duration(static_cast<Duration::rep>(network.random()() % most)),
                    [this, r, plan] {
                      if (!world_.alive(world_.host_of(Rank{r}))) return;
                      auto signature = plan.signature;
                      if (plan.odd.contains(r)) signature.dtype = runtime::DType::f64;
                      HORO_CHECK(world_.submit(Rank{r}, plan.name, signature, plan.set));
                    });
    }
  }
}

bool Trainees::all_have(SetId set, std::size_t tensors) const {
  for (int h = 0; h < world_.hosts(); ++h) {
    if (!world_.has_log(h, set)) continue;
    std::size_t have = 0;
    for (const auto& record : world_.log(h, set).records()) have += record.names.size();
    if (have < tensors || world_.log(h, set).done() < world_.log(h, set).published()) return false;
  }
  return true;
}

std::string check_logs(World& world, SetId set, const std::vector<Plan>& plans) {
  const std::vector<SimRecord>* first = nullptr;
  for (int h = 0; h < world.hosts(); ++h) {
    if (!world.has_log(h, set)) continue;
    const auto& records = world.log(h, set).records();
    if (first == nullptr) first = &records;
    if (records != *first) return fmt::format("host {} has another log", h);
  }
  if (first == nullptr) return "nobody has a log";
  std::map<std::string, const Plan*> due;
  for (const auto& plan : plans) {
    if (plan.set == set) due.emplace(plan.name, &plan);
  }
  for (const auto& record : *first) {
    for (const auto& name : record.names) {
      const auto plan = due.extract(name);
      if (plan.empty())
        return fmt::format("'{}' is in the log twice, or was never submitted", name);
      const bool mismatched = !plan.mapped()->odd.empty();
      if ((record.kind == LogKind::mismatch) != mismatched)
        return fmt::format("'{}' ended as {}", name, static_cast<int>(record.kind));
    }
  }
  if (!due.empty()) return fmt::format("'{}' is missing", due.begin()->first);
  return {};
}

}  // namespace horo::sim
