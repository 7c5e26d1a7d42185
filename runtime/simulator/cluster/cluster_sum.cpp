// SPDX-License-Identifier: Apache-2.0
// The sums of a simulated job.
#include <algorithm>

#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"

namespace horo::runtime::sim {

Hierarchy ClusterRun::hierarchy_of(int rank) const {
  const int host = host_of_[static_cast<std::size_t>(rank)];
  const auto& ranks = hosts_[static_cast<std::size_t>(host)].ranks;
  return {.hosts = world_->hosts(),
          .ranks = world_->size(),
          .local_ranks = static_cast<int>(ranks.size()),
          .local_rank = rank - ranks.front(),
          .owners = owners_,
          .most_local = most_local_};
}

std::uint64_t ClusterRun::messages() const {
  std::uint64_t sum = all_->messages();
  for (const auto& wire : across_) sum += wire->messages();
  return sum;
}

std::uint64_t ClusterRun::connections() const {
  std::uint64_t sum = all_->connections();
  for (const auto& wire : across_) sum += wire->connections();
  return sum;
}

std::uint64_t ClusterRun::most_connections() const {
  std::uint64_t most = 0;
  for (const int rank : members_) {
    auto sum = all_->connections_of(rank);
    const auto hierarchy = hierarchy_of(rank);
    const int host = host_of_[static_cast<std::size_t>(rank)];
    if (hierarchy.owns())
      sum += across_[static_cast<std::size_t>(hierarchy.local_rank)]->connections_of(host);
    most = std::max(most, sum);
  }
  return most;
}

SumReport ClusterRun::sum(std::uint64_t bytes, const std::vector<Duration>& begins,
                          std::uint64_t small_message) {
  SumReport report{.bytes = bytes};
  const auto bucket = bucket_of(bytes / 4, small_message);
  report.first = run_sum(bucket, begins, report);
  std::vector<std::uint64_t> before;
  for (int h = 0; h < world_->hosts(); ++h) before.push_back(network_.sent(h));
  const auto messages_before = messages();
  report.again = run_sum(bucket, begins, report);
  report.messages = messages() - messages_before;
  for (int h = 0; h < world_->hosts(); ++h) {
    const auto host = static_cast<std::size_t>(h);
    const auto sent = network_.sent(h) - before[host];
    report.most_sent = std::max(report.most_sent, sent);
    report.link =
        std::max(report.link, taking(sent, network_.links()->hosts[host].bytes_per_second));
  }
  return report;
}

SumWay ClusterRun::way_of(std::uint64_t bytes, std::uint64_t small_message) const {
  return way_of(bucket_of(bytes / 4, small_message));
}

SumWay ClusterRun::way_of(const Bucket& bucket) const {
  const auto hierarchy = hierarchy_of(0);
  const auto table = BackendTable::of_hosts({.name = "tcp", .rejected = {}}, hierarchy, {});
  const bool by_hosts = table.choose(bucket).path == BucketPath::by_hosts;
  const int size = by_hosts ? world_->hosts() : world_->size();
  const auto elements = by_hosts ? slice_elements(cut_bucket(bucket, kPiece).front(), hierarchy)
                                 : bucket.like.elements;
  const auto moved = std::min(elements * 4, segment_bytes(size));
  const Mesh all{.size = size, .shares_hosts = !by_hosts && most_local_ > 1};
  return {.by_hosts = by_hosts,
          .algorithm = choose_allreduce(all, moved, Partial::exact, bucket.small_message)};
}

Duration ClusterRun::run_sum(const Bucket& bucket, const std::vector<Duration>& begins,
                             SumReport& report) {
  const auto way = way_of(bucket);
  const bool by_hosts = way.by_hosts;
  const int size = by_hosts ? world_->hosts() : world_->size();
  report.path = by_hosts ? "by hosts" : "whole";
  report.algorithm = name(way.algorithm);
  report.ends.assign(static_cast<std::size_t>(world_->hosts()), Duration{});
  const auto begin = network_.now();
  for (const int rank : members_) {
    const auto host = static_cast<std::size_t>(host_of_[static_cast<std::size_t>(rank)]);
    const auto later = begins.empty() ? Duration{} : begins[host];
    for (int worker = 0; worker < TcpTransport::workers_of(size); ++worker) {
      spawn([=, this, &report] {
        sleep(later);
        by_hosts ? sum_by_hosts(rank, worker, bucket) : sum_whole(rank, worker, bucket);
        report.ends[host] = std::max(report.ends[host], network_.now() - begin);
      });
    }
  }
  return finish();
}

/// One segment, as FlatBackend runs it.
void ClusterRun::run_segment(Transport& transport, const Mesh& mesh, const Bucket& bucket,
                             const ScheduleRun& run) {
  CutBucket cut;
  HORO_CHECK(runtime::cut_bucket(bucket, mesh, segment_bytes(mesh.size), "tcp", cut));
  const auto segment = make_segment(cut.bucket, cut.lanes, mesh, cut.unit, run.segment);
  std::vector<std::unique_ptr<PendingMessage>> messages;
  HORO_CHECK(run_schedule(transport, segment.schedule, run, messages));
}

void ClusterRun::sum_whole(int rank, int worker, const Bucket& bucket) {
  const Mesh mesh{.position = rank, .size = world_->size(), .shares_hosts = most_local_ > 1};
  const auto transport = all_->transport(rank);
  const auto combine = [this](const Combine& one) {
    sleep(taking(one.elements * 4 * (one.sources.size() - 1), kReducedPerSecond));
  };
  const auto step = static_cast<std::uint64_t>(TcpTransport::workers_of(mesh.size));
  const auto segments = segments_of(bucket, mesh.size);
  for (auto s = static_cast<std::uint64_t>(worker); s < segments; s += step) {
    run_segment(*transport, mesh, bucket,
                {.segment = s,
                 .worker = static_cast<std::uint32_t>(worker),
                 .memory = nullptr,
                 .combine = combine});
  }
}

/// Pieces as those of the hierarchical backend. A piece passes the host's memory before and after
/// the sum between hosts.
void ClusterRun::sum_by_hosts(int rank, int worker, const Bucket& bucket) {
  const auto hierarchy = hierarchy_of(rank);
  if (!hierarchy.owns()) return;
  const Mesh mesh{.position = host_of_[static_cast<std::size_t>(rank)], .size = hierarchy.hosts};
  const auto transport =
      across_[static_cast<std::size_t>(hierarchy.local_rank)]->transport(mesh.position);
  const auto combine = [this](const Combine& one) {
    sleep(taking(one.elements * 4 * (one.sources.size() - 1), kReducedPerSecond));
  };
  const auto pieces = cut_bucket(bucket, kPiece);
  const auto step = static_cast<std::size_t>(TcpTransport::workers_of(mesh.size));
  for (auto p = static_cast<std::size_t>(worker); p < pieces.size(); p += step) {
    const auto elements = slice_elements(pieces[p], hierarchy);
    const auto inside = taking(elements * 4 * static_cast<std::uint64_t>(hierarchy.local_ranks),
                               cluster_.inside.bytes_per_second);
    sleep(inside);
    const auto slice = bucket_of(elements, bucket.small_message);
    const auto segments = segments_of(slice, mesh.size);
    for (std::uint64_t s = 0; s < segments; ++s) {
      run_segment(*transport, mesh, slice,
                  {.segment = s,
                   .worker = static_cast<std::uint32_t>(worker),
                   .memory = nullptr,
                   .combine = combine});
    }
    sleep(inside);
  }
}

}  // namespace horo::runtime::sim
