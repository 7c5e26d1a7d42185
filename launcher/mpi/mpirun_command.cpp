// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpirun_command.hpp"

#include <algorithm>
#include <array>

namespace horo::launcher {

namespace {

// With so many hosts, Open MPI advises against daemons that start further daemons.
constexpr std::size_t kManyHosts = 64;

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const auto& word : words) text += fmt::format("{}{}", text.empty() ? "" : separator, word);
  return text;
}

class Composer {
 public:
  explicit Composer(const MpiRequest& request) : request_(request) {}

  Result<MpiCommand> compose() {
    add({request_.program});
    switch (request_.kind) {
      case MpiKind::open_mpi:
      case MpiKind::spectrum:
        open_mpi();
        break;
      case MpiKind::mpich:
      case MpiKind::intel:
        HORO_TRY_STATUS(hydra());
        break;
    }
    add(request_.extra);
    add(request_.agent);
    return std::move(command_);
  }

 private:
  void add(const std::vector<std::string>& words) {
    command_.words.insert(command_.words.end(), words.begin(), words.end());
  }

  std::string ranks() const {
    int count = 0;
    for (const auto& host : request_.hosts) count += host.count();
    return std::to_string(count);
  }

  std::string hosts(bool with_slots) const {
    std::string list;
    for (const auto& host : request_.hosts) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", host.name);
      if (with_slots) list += fmt::format(":{}", host.count());
    }
    return list;
  }

  void open_mpi() {
    const bool spectrum = request_.kind == MpiKind::spectrum;
    if (request_.root) {
      add({"--allow-run-as-root"});
      command_.notes.emplace_back("--allow-run-as-root, because this is root");
    }
    add({"-np", ranks(), "-H", hosts(true)});
    if (!request_.binding.empty()) {
      add(request_.binding);
    } else if (spectrum) {
      add({"-bind-to", "socket", "-map-by", "socket", "-rank-by", "core"});
    } else {
      add({"-bind-to", "none", "-map-by", "slot"});
    }
    if (request_.tcp && spectrum) add({"-tcp"});
    if (request_.tcp && !spectrum) add({"-mca", "pml", "ob1", "-mca", "btl", "^openib,uct,usnic"});
    if (!spectrum) yield_when_idle();
    if (!request_.ssh.empty()) add({"-mca", "plm_rsh_args", joined(request_.ssh, " ")});
    if (!request_.interfaces.empty()) {
      const auto list = joined(request_.interfaces, ",");
      add({"-mca", "btl_tcp_if_include", list, "-mca", "oob_tcp_if_include", list});
    }
    if (request_.hosts.size() >= kManyHosts) {
      add({"-mca", "plm_rsh_no_tree_spawn", "true", "-mca", "plm_rsh_num_concurrent",
           std::to_string(request_.hosts.size())});
    }
    for (const auto& variable : request_.exported) add({"-x", variable});
  }

  /// With more ranks than cores, a rank that waits must not keep a core from the rank it waits for.
  void yield_when_idle() {
    int most = 0;
    for (const auto& host : request_.hosts) most = std::max(most, host.count());
    if (request_.cores == 0 || most <= request_.cores) return;
    add({"-mca", "mpi_yield_when_idle", "1"});
    command_.notes.push_back(
        fmt::format("-mca mpi_yield_when_idle 1, because {} ranks share a host and this machine "
                    "has {} cores",
                    most, request_.cores));
  }

  Status hydra() {
    if (request_.tcp) {
      return fail(Errc::unsupported,
                  "{} has no option for --tcp; give its own options with --mpi-args",
                  name(request_.kind));
    }
    if (request_.interfaces.size() > 1) {
      return fail(Errc::unsupported,
                  "{} takes one network interface, not {}; give one with --network-interfaces",
                  name(request_.kind), joined(request_.interfaces, " and "));
    }
    add({"-np", ranks()});
    if (request_.kind == MpiKind::intel) {
      const int count = request_.hosts.front().count();
      for (const auto& host : request_.hosts) {
        if (host.count() == count) continue;
        return fail(Errc::unsupported,
                    "Intel MPI's mpirun needs the same number of ranks on every host, not {} on "
                    "'{}' and {} "
                    "on '{}'; change -H or -np",
                    count, request_.hosts.front().name, host.count(), host.name);
      }
      add({"-ppn", std::to_string(count), "-hosts", hosts(false), "-genvall"});
    } else {
      add({"-hosts", hosts(true)});
    }
    if (!request_.ssh.empty()) give_ssh_to_hydra();
    if (!request_.interfaces.empty()) add({"-iface", request_.interfaces.front()});
    add(request_.binding);
    return {};
  }

  /// Intel MPI has an option for ssh's arguments, MPICH only a variable.
  void give_ssh_to_hydra() {
    const auto arguments = joined(request_.ssh, " ");
    if (request_.kind == MpiKind::intel)
      return add({"-bootstrap", "ssh", "-bootstrap-exec-args", arguments});
    command_.variables.emplace_back("HYDRA_LAUNCHER_EXTRA_ARGS", arguments);
    command_.notes.push_back(fmt::format(
        "HYDRA_LAUNCHER_EXTRA_ARGS='{}', because MPICH has no option for it", arguments));
    add({"-launcher", "ssh"});
  }

  const MpiRequest& request_;
  MpiCommand command_;
};

bool is_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && (text.front() < '0' || text.front() > '9') &&
         std::all_of(text.begin(), text.end(), good);
}

}  // namespace

Result<MpiCommand> compose_mpirun(const MpiRequest& request) {
  return Composer(request).compose();
}

std::vector<std::string> names_to_export(const Environment& environment) {
  std::vector<std::string> names;
  for (const auto& [name, value] : environment) {
    if (is_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_of_one_mpi_rank(std::string_view variable) {
  constexpr std::array<std::string_view, 10> kBeginnings{"OMPI_COMM_WORLD_",
                                                         "OMPI_MCA_orte_",
                                                         "OMPI_MCA_ess",
                                                         "OMPI_MCA_pmix",
                                                         "PMIX_",
                                                         "PMI_",
                                                         "HYDI_",
                                                         "MPI_LOCAL",
                                                         "JSM_NAMESPACE_",
                                                         "PRTE_"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [variable](std::string_view start) { return variable.starts_with(start); });
}

}  // namespace horo::launcher
