// SPDX-License-Identifier: Apache-2.0
// The rows of the knobs that only the launcher reads: placement, other hosts, timeouts and output.
// Those of --mpi are in mpi_knobs.hpp, those of elastic jobs in elastic_knobs.hpp, those of the
// ranks in knobs.hpp.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"

namespace horo::knobs {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

// --- Placement ---

inline constexpr Knob<int> kSlotsPerHost{
    .text = {.key = "slots.per.host",
             .group = kPlaces,
             .help = "slots of a host for which no number is given",
             .unit = "ranks",
             .reader = KnobReader::launcher,
             .flags = {Spelling{.name = "slots"}}},
    .fallback = 1,
    .least = 1,
    .most = 1024};

inline constexpr Knob<int> kRanksPerHost{
    .text = {.key = "ranks.per.host",
             .group = kPlaces,
             .help = "ranks on each host, the last host may get fewer; 0: as many as its slots",
             .unit = "ranks",
             .reader = KnobReader::launcher},
    .fallback = 0,
    .least = 0,
    .most = 1024};

inline constexpr Knob<MapBy> kMapBy{
    .text = {.key = "map.by",
             .group = kPlaces,
             .help = "pack fills one host before the next; spread gives all hosts equally "
                     "many consecutive ranks; host gives the ranks to the hosts in turn",
             .choices = {"pack", "spread", "host"},
             .reader = KnobReader::launcher},
    .fallback = MapBy::pack,
    .least = MapBy::pack,
    .most = MapBy::host};

inline constexpr Knob<BindTo> kBindTo{
    .text = {.key = "bind.to",
             .group = kPlaces,
             .help = "the part of its host on which a rank may run: an equal share of the cores, "
                     "its memory node, or the cores nearest to its GPU; auto is gpu or numa for "
                     "several ranks on a host with several memory nodes, otherwise none",
             .choices = {"auto", "core", "numa", "gpu", "none"},
             .reader = KnobReader::launcher},
    .fallback = BindTo::automatic,
    .least = BindTo::automatic,
    .most = BindTo::none};

inline constexpr Knob<GpuMode> kGpus{
    .text = {.key = "gpus",
             .group = kPlaces,
             .help = "auto shows each rank the GPU with its local rank's number, by "
                     "CUDA_VISIBLE_DEVICES, or HIP_VISIBLE_DEVICES for AMD's; off changes neither",
             .choices = {"off", "auto"},
             .reader = KnobReader::launcher},
    .fallback = GpuMode::off,
    .least = GpuMode::off,
    .most = GpuMode::automatic};

inline constexpr Knob<Duration> kDiscoveryTimeout{
    .text = {.key = "discovery.timeout",
             .group = kPlaces,
             .help = "how long a discovery script or a scheduler's program may take",
             .unit = "s",
             .reader = KnobReader::launcher},
    .fallback = 30s,
    .least = 1ms,
    .most = 1h};

// --- Other hosts ---

inline constexpr Knob<StarterChoice> kStarter{
    .text = {.key = "starter",
             .group = kOtherHosts,
             .help = "program that starts agents on other hosts; auto: srun inside a Slurm job, "
                     "blaunch or jsrun inside an LSF job, for the hosts of that job; otherwise ssh",
             .choices = {"auto", "ssh", "slurm", "lsf"},
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents},
    .fallback = StarterChoice::automatic,
    .least = StarterChoice::automatic,
    .most = StarterChoice::lsf};

inline constexpr Knob<std::string_view> kRshAgent{
    .text = {.key = "rsh.agent",
             .group = kOtherHosts,
             .help = "start agents with this program, called with a host and a command line, like "
                     "kubexec.sh of the Kubernetes MPI operator",
             .unit = "path",
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents},
    .fallback = ""};

inline constexpr Knob<int> kSshPort{
    .text = {.key = "ssh.port",
             .group = kOtherHosts,
             .help = "port of the hosts' ssh servers; 0: the port in ssh's configuration",
             .unit = "port",
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents_or_mpirun},
    .fallback = 0,
    .least = 0,
    .most = 65535};

inline constexpr Knob<std::string_view> kSshIdentityFile{
    .text = {.key = "ssh.identity.file",
             .group = kOtherHosts,
             .help = "private key to log in with; by default the keys of ssh-agent and of ssh's "
                     "configuration",
             .unit = "path",
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents_or_mpirun},
    .fallback = ""};

inline constexpr Knob<std::string_view> kSshProgram{
    .text = {.key = "ssh.program",
             .group = kOtherHosts,
             .help =
                 "start agents with this program, called like ssh, instead of horo's own client",
             .unit = "path",
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents},
    .fallback = ""};

inline constexpr Knob<int> kFanout{
    .text = {.key = "fanout",
             .group = kOtherHosts,
             .help = "hosts on which one machine starts agents by ssh; these agents start those of "
                     "further hosts",
             .unit = "hosts",
             .reader = KnobReader::launcher,
             .scope = KnobScope::agents},
    .fallback = 32,
    .least = 1,
    .most = 1024};

inline constexpr Knob<std::string_view> kNetworkInterfaces{
    .text =
        {.key = "network.interfaces",
         .group = kOtherHosts,
         .help =
             "network interfaces for NCCL, as NAME,NAME ...; tcp and gloo use the first; may be "
             "given several times; by default routes decide",
         .reader = KnobReader::launcher,
         .flags = {Spelling{.name = "network-interface"}}},
    .fallback = ""};

inline constexpr Knob<std::string_view> kEnvAllow{
    .text =
        {.key = "env.allow",
         .group = kOtherHosts,
         .help =
             "variables of the launcher's environment that are passed to ranks, as NAME,NAME* ...",
         .reader = KnobReader::launcher},
    .fallback = "*"};

inline constexpr Knob<std::string_view> kEnvDeny{
    .text = {.key = "env.deny",
             .group = kOtherHosts,
             .help = "variables that are not passed to ranks, even if they are allowed",
             .reader = KnobReader::launcher},
    .fallback = ""};

// --- Times and failures ---

inline constexpr Knob<OptionalDuration> kTimeout{
    .text = {.key = "timeout",
             .group = kTimes,
             .help = "stop the whole job after this long",
             .unit = "s",
             .none = "never",
             .reader = KnobReader::launcher},
    .fallback = std::nullopt,
    .least = 1ms,
    .most = 2400h};

inline constexpr Knob<Duration> kFailureGrace{
    .text =
        {.key = "failure.grace",
         .group = kTimes,
         .help =
             "time that the other ranks have after a failure to report it and to end by themselves",
         .unit = "s",
         .reader = KnobReader::launcher},
    .fallback = 2s,
    .least = 0s,
    .most = 1h};

inline constexpr Knob<Duration> kGrace{.text = {.key = "grace",
                                                .group = kTimes,
                                                .help = "time between SIGTERM and SIGKILL",
                                                .unit = "s",
                                                .reader = KnobReader::launcher},
                                       .fallback = 5s,
                                       .least = 0s,
                                       .most = 1h};

inline constexpr Knob<NoticeSignal> kSignal{
    .text = {.key = "signal",
             .group = kTimes,
             .help = "signal by which the batch system announces the end of the job's time: it is "
                     "passed to the ranks, and the exit code asks for the job to be queued again",
             .choices = {"off", "usr1", "usr2", "term"},
             .reader = KnobReader::launcher},
    .fallback = NoticeSignal::off,
    .least = NoticeSignal::off,
    .most = NoticeSignal::term};

inline constexpr Knob<std::string_view> kMaxRestarts{
    .text = {.key = "max.restarts",
             .group = kTimes,
             .help = "how often the job is restarted after a failure outside the program: a "
                     "number, or a number within a time, as 3/1h",
             .reader = KnobReader::launcher},
    .fallback = "0"};

inline constexpr Knob<std::string_view> kRestartOn{
    .text = {.key = "restart.on",
             .group = kTimes,
             .help = "exit codes and signals of a rank after which the job may be restarted too, "
                     "as 75,100-110,SIGSEGV; any: all of them",
             .reader = KnobReader::launcher},
    .fallback = ""};

// --- Output ---

inline constexpr Knob<TagMode> kTag{
    .text = {.key = "tag",
             .group = kOutput,
             .help = "prefix each line with its rank; auto does so when there are several ranks",
             .choices = {"auto", "rank", "off"},
             .reader = KnobReader::launcher},
    .fallback = TagMode::automatic,
    .least = TagMode::automatic,
    .most = TagMode::off};

inline constexpr Knob<std::string_view> kPrefix{
    .text = {.key = "prefix",
             .group = kOutput,
             .help = "template of the prefix, with: {rank} {local_rank} {size} {host} {stream} "
                     "{job} {time}",
             .reader = KnobReader::launcher},
    .fallback = "[{rank}] "};

inline constexpr Knob<bool> kPrefixTimestamp{
    .text = {.key = "prefix.timestamp",
             .group = kOutput,
             .help = "put the time in front of each prefix",
             .reader = KnobReader::launcher,
             .flags = {Spelling{.name = "prefix-output-with-timestamp"}}}};

inline constexpr Knob<std::string_view> kOutputRanks{
    .text = {.key = "output.ranks",
             .group = kOutput,
             .help = "ranks whose lines are shown on the screen, as 0,3-5; files and reports "
                     "contain all ranks",
             .reader = KnobReader::launcher,
             .flags = {Spelling{.name = "ranks"}}},
    .fallback = ""};

inline constexpr Knob<FoldMode> kFold{
    .text = {.key = "fold",
             .group = kOutput,
             .help = "print equal lines of several ranks once; auto does so on a terminal that "
                     "shows more than 8 ranks",
             .choices = {"auto", "on", "off"},
             .reader = KnobReader::launcher},
    .fallback = FoldMode::automatic,
    .least = FoldMode::automatic,
    .most = FoldMode::off};

inline constexpr Knob<std::string_view> kOutputFilename{
    .text = {.key = "output.filename",
             .group = kOutput,
             .help =
                 "directory that also gets each rank's output: rank.<r>/stdout and rank.<r>/stderr",
             .unit = "path",
             .reader = KnobReader::launcher},
    .fallback = ""};

inline constexpr Knob<StdinMode> kStdin{
    .text = {.key = "stdin",
             .group = kOutput,
             .help = "rank that reads standard input; auto is none, so that a job in a shell loop "
                     "does not consume the loop's input",
             .choices = {"auto", "none", "rank0"},
             .reader = KnobReader::launcher},
    .fallback = StdinMode::automatic,
    .least = StdinMode::automatic,
    .most = StdinMode::rank0};

inline constexpr Knob<std::string_view> kJsonReport{
    .text = {.key = "json.report",
             .group = kOutput,
             .help = "file for the final report as JSON",
             .unit = "path",
             .reader = KnobReader::launcher},
    .fallback = ""};

inline constexpr Knob<bool> kVerbose{.text = {.key = "verbose",
                                              .group = kOutput,
                                              .help = "print what the launcher does",
                                              .reader = KnobReader::launcher}};

// --- Libraries ---

inline constexpr Knob<TorchBackend> kTorchBackend{
    .text = {.key = "torch.backend",
             .group = kLibraries,
             .help =
                 "horo: Python programs that ask torch.distributed for gloo, or for no backend, "
                 "get the backend horo; unchanged: the one that they ask for",
             .choices = {"unchanged", "horo"},
             .reader = KnobReader::launcher},
    .fallback = TorchBackend::unchanged,
    .least = TorchBackend::unchanged,
    .most = TorchBackend::horo};

}  // namespace horo::knobs
