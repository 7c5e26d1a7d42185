// SPDX-License-Identifier: Apache-2.0
#include "apps/common/cluster_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include <yaml-cpp/yaml.h>

namespace horo::apps {

namespace {

using namespace runtime::sim;  // NOLINT(google-build-using-namespace): what it reads into

constexpr int kMostHosts = 100'000;
constexpr int kMostRanks = 1'000'000;
constexpr int kMostRanksOfHost = 64;   // The simulator keeps the ranks of a host as bits of a word.
constexpr double kMostStepMs = 3.6e6;  // An hour.
constexpr double kMostLatencyUs = 1e6;
constexpr double kMostBurst = 1e9;
/// The bytes of a sum take no longer on the slowest link, which they cross several times.
constexpr double kMostSumSeconds = 3600;

/// Reads one map of the file. The first fault stays; later values are not read.
class Section {
 public:
  Section(const YAML::Node& map, std::string name, const std::string& file, Status& fault)
      : map_(map), name_(std::move(name)), file_(file), fault_(fault) {
    if (fault_ && !map_.IsMap()) blame(map_, name_, "must have keys with values");
  }

  /// A value with `least` <= value <= `most`, in the key's unit.
  void number(const char* key, double least, double most, double& value) {
    const auto node = find(key);
    if (!node) return;
    double read = 0;
    if (!YAML::convert<double>::decode(*node, read) || !std::isfinite(read) || read < least ||
        read > most) {
      return blame(*node, path(key), fmt::format("must be a number from {} to {}", least, most));
    }
    value = read;
  }

  void whole(const char* key, int least, int most, int& value) {
    const auto node = find(key);
    if (!node) return;
    int read = 0;
    if (!YAML::convert<int>::decode(*node, read) || read < least || read > most) {
      return blame(*node, path(key),
                   fmt::format("must be a whole number from {} to {}", least, most));
    }
    value = read;
  }

  void time(const char* key, double unit, Duration& value, double most = 1e9) {
    double read = static_cast<double>(value.count()) / unit;
    number(key, 0, most, read);
    value = Duration(static_cast<Duration::rep>(read * unit));
  }

  void flag(const char* key, bool& value) {
    const auto node = find(key);
    if (node && !YAML::convert<bool>::decode(*node, value))
      blame(*node, path(key), "must be true or false");
  }

  void link(Uplink& link) {
    time("latency_us", 1e3, link.latency, kMostLatencyUs);
    double gbits = link.bytes_per_second * 8 / 1e9;
    number("gbit_per_s", 1e-3, 1e5, gbits);
    link.bytes_per_second = gbits * 1e9 / 8;
  }

  /// A link between hosts.
  void uplink(Uplink& up) {
    link(up);
    number("burst_bytes", 0, kMostBurst, up.burst_bytes);
  }

  /// The value of one of `words`, by its index.
  void word(const char* key, const std::vector<std::string_view>& words, std::size_t& value) {
    const auto node = find(key);
    if (!node) return;
    const auto found =
        std::find(words.begin(), words.end(), node->IsScalar() ? node->Scalar() : "");
    if (found == words.end())
      return blame(*node, path(key), fmt::format("must be one of {}", fmt::join(words, ", ")));
    value = static_cast<std::size_t>(found - words.begin());
  }

  std::optional<Section> section(const char* key) {
    const auto node = find(key);
    if (!node) return std::nullopt;
    return Section(*node, path(key), file_, fault_);
  }

  /// Calls `use(node, name)` for each item of a list.
  template <typename Use>
  void list(const char* key, Use use) {
    const auto node = find(key);
    if (!node) return;
    if (!node->IsSequence()) return blame(*node, path(key), "must be a list");
    std::size_t index = 0;
    for (const auto& item : *node) {
      if (fault_) use(item, fmt::format("{}[{}]", path(key), index++));
    }
  }

  /// After all keys have been read: others are a fault.
  void end() {
    if (!fault_) return;
    for (const auto& entry : map_) {
      const auto key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      fault_ = fail(Errc::invalid_argument, "{}:{}: there is no key '{}'; {} has {}", file_,
                    entry.first.Mark().line + 1, path(key), name_.empty() ? "a cluster" : name_,
                    fmt::join(known_, ", "));
      return;
    }
  }

  /// The file does not say something that it must.
  void need(const char* key) {
    if (fault_ && !map_[key]) {
      fault_ = fail(Errc::invalid_argument, "{}:{}: {} is missing; add it", file_,
                    map_.Mark().line + 1, path(key));
    }
  }

  void blame(const YAML::Node& node, const std::string& what, const std::string& rule) {
    const auto value = node.IsScalar() ? fmt::format("is '{}'; it ", node.Scalar()) : std::string();
    fault_ = fail(Errc::invalid_argument, "{}:{}: {} {}{}", file_, node.Mark().line + 1,
                  what.empty() ? "the cluster" : what, value, rule);
  }

 private:
  std::string path(const std::string& key) const {
    return name_.empty() ? key : fmt::format("{}.{}", name_, key);
  }

  std::optional<YAML::Node> find(const char* key) {
    known_.emplace_back(key);
    if (!fault_) return std::nullopt;
    const YAML::Node map(map_);
    const YAML::Node node = map[key];
    if (!node || node.IsNull()) return std::nullopt;
    return node;
  }

  const YAML::Node map_;
  const std::string name_;
  const std::string& file_;
  Status& fault_;
  std::vector<std::string> known_;
};

void read_hosts(Section& top, const Uplink& usual, Cluster& cluster, const std::string& file,
                Status& fault) {
  top.need("hosts");
  top.list("hosts", [&](const YAML::Node& node, const std::string& name) {
    HostGroup group{.link = usual};
    Section section(node, name, file, fault);
    section.whole("count", 1, kMostHosts, group.count);
    section.whole("ranks", 1, kMostRanksOfHost, group.ranks);
    section.uplink(group.link);
    section.end();
    cluster.groups.push_back(group);
    if (fault && (cluster.hosts() > kMostHosts || cluster.ranks() > kMostRanks)) {
      section.blame(node, name,
                    fmt::format("makes {} hosts with {} ranks; at most {} and {} are simulated",
                                cluster.hosts(), cluster.ranks(), kMostHosts, kMostRanks));
    }
  });
}

void read_failures(Section& top, Cluster& cluster, const std::string& file, Status& fault) {
  top.list("failures", [&](const YAML::Node& node, const std::string& where) {
    HostFailure failure;
    std::size_t how = 0;
    Section section(node, where, file, fault);
    section.time("at_s", 1e9, failure.at);
    section.need("host");
    section.whole("host", 0, cluster.hosts() - 1, failure.host);
    section.word("how",
                 {name(HostFailure::How::dies), name(HostFailure::How::is_cut),
                  name(HostFailure::How::stops)},
                 how);
    section.end();
    failure.how = static_cast<HostFailure::How>(how);
    cluster.failures.push_back(failure);
  });
}

/// Bytes of a tensor, or a map with bytes, a time, and how many there are of it.
void read_tensors(Section& section, TrainingStep& step, const std::string& file, Status& fault) {
  constexpr double kMostBytes = 4e9;
  std::vector<std::size_t> timeless;
  section.list("tensors", [&](const YAML::Node& node, const std::string& name) {
    const bool alone = node.IsScalar();
    YAML::Node map(node);
    if (alone) map = YAML::Load(fmt::format("{{bytes: '{}'}}", node.Scalar()));
    double bytes = 0;
    int count = 1;
    Duration at{};
    Section one(map, name, file, fault);
    one.need("bytes");
    one.number("bytes", 4, kMostBytes, bytes);
    one.whole("count", 1, 10'000, count);
    one.time("at_ms", 1e6, at, kMostStepMs);
    one.end();
    for (int i = 0; i < count; ++i) {
      if (!map["at_ms"]) timeless.push_back(step.tensors.size());
      step.tensors.push_back({.bytes = static_cast<std::uint64_t>(bytes / 4) * 4, .at = at});
    }
  });
  // Tensors without a time appear evenly during the step.
  const auto all = static_cast<Duration::rep>(step.tensors.size());
  for (const auto i : timeless)
    step.tensors[i].at = step.compute * static_cast<Duration::rep>(i) / all;
  std::stable_sort(step.tensors.begin(), step.tensors.end(),
                   [](const StepTensor& a, const StepTensor& b) { return a.at < b.at; });
}

void read_training(Section& top, TrainingStep& step, const std::string& file, Status& fault) {
  auto training = top.section("training");
  if (!training) return;
  training->need("compute_ms");
  training->time("compute_ms", 1e6, step.compute, kMostStepMs);
  training->need("tensors");
  read_tensors(*training, step, file, fault);
  training->end();
}

void read_launch(Section& top, LaunchModel& model) {
  constexpr double kMostMs = 1e5;
  auto launch = top.section("launch");
  if (!launch) return;
  launch->whole("fanout", 1, 1024, model.fanout);
  launch->flag("jump_host", model.jump_host);
  launch->time("login_ms", 1e6, model.login, kMostMs);
  launch->time("login_cost_ms", 1e6, model.login_cost, kMostMs);
  launch->time("spawn_ms", 1e6, model.spawn, kMostMs);
  launch->whole("environment_bytes", 0, 1'000'000, model.environment_bytes);
  launch->end();
}

/// Fails where a sum would take longer than the simulator's virtual time lasts.
Status check_sums(const Cluster& cluster, const std::string& file) {
  double slowest = cluster.inside.bytes_per_second;
  for (const auto& group : cluster.groups) slowest = std::min(slowest, group.link.bytes_per_second);
  const auto check = [&](std::string_view key, std::uint64_t bytes) -> Status {
    const double seconds = static_cast<double>(bytes) / slowest;
    if (seconds <= kMostSumSeconds) return {};
    return fail(
        Errc::invalid_argument,
        "{}: {}: {} bytes take {:.0f} s on the slowest link of {:g} gbit_per_s; at most {} s "
        "are simulated: describe fewer bytes or a faster link",
        file, key, bytes, seconds, slowest * 8 / 1e9, kMostSumSeconds);
  };
  for (const auto bytes : cluster.sums) HORO_TRY_STATUS(check("sums", bytes));
  // Fusion may make one sum of all tensors.
  return check("training.tensors", cluster.training.bytes());
}

Status read_all(const YAML::Node& root, const std::string& file, Cluster& cluster) {
  Status fault;
  Section top(root, "", file, fault);
  Uplink usual{.latency = std::chrono::microseconds(50)};
  if (auto links = top.section("links")) {
    links->uplink(usual);
    links->time("jitter_us", 1e3, cluster.jitter, kMostLatencyUs);
    links->end();
  }
  if (auto inside = top.section("inside")) {
    inside->link(cluster.inside);
    inside->end();
  }
  read_hosts(top, usual, cluster, file, fault);
  top.whole("tree_radix", 1, 60, cluster.radix);
  top.time("heartbeat_timeout_s", 1e9, cluster.heartbeat_timeout);
  top.whole("tensors", 1, 10'000, cluster.tensors);
  int seed = 1;
  top.whole("seed", 0, 1'000'000'000, seed);
  cluster.seed = static_cast<std::uint64_t>(seed);
  if (root.IsMap() && root["sums"]) cluster.sums.clear();
  top.list("sums", [&](const YAML::Node& node, const std::string& name) {
    double bytes = 0;
    if (!YAML::convert<double>::decode(node, bytes) || bytes < 4 || bytes > 4e9 ||
        bytes != std::floor(bytes / 4) * 4)
      return top.blame(node, name, "must be bytes of float32, a multiple of 4 up to 4e9");
    cluster.sums.push_back(static_cast<std::uint64_t>(bytes));
  });
  read_failures(top, cluster, file, fault);
  read_training(top, cluster.training, file, fault);
  read_launch(top, cluster.launch);
  top.end();
  return fault;
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text, const std::string& name) {
  Cluster cluster;
  try {
    HORO_TRY_STATUS(read_all(YAML::Load(std::string(text)), name, cluster));
    HORO_TRY_STATUS(check_sums(cluster, name));
  } catch (const YAML::Exception& error) {
    return fail(Errc::invalid_argument, "{}:{}: {}; the file must be YAML", name,
                error.mark.line + 1, error.msg);
  }
  return cluster;
}

Result<Cluster> read_cluster(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail_errno(errno, fmt::format("cluster file '{}'", path));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_cluster(text.str(), path);
}

}  // namespace horo::apps
