// SPDX-License-Identifier: Apache-2.0
// The fields of each message, written once: an archive that writes and one that reads both walk
// them.
#pragma once

#include "launcher/agent/protocol.hpp"

namespace horo::launcher::protocol {

template <typename Archive>
void fields(Archive& archive, Hello& m) {
  archive.number(m.magic);
  archive.number(m.protocol);
  archive.number(m.version_code);
  archive.text(m.version);
}

template <typename Archive>
void fields(Archive& archive, WorkerIdentity& w) {
  archive.strong(w.rank);
  archive.number(w.size);
  archive.strong(w.local_rank);
  archive.number(w.local_size);
  archive.number(w.cross_rank);
  archive.number(w.cross_size);
  archive.number(w.host_index);
  archive.text(w.hostname);
  archive.text(w.job_id);
  archive.text(w.rendezvous);
  archive.text(w.master_address);
  archive.number(w.master_port);
  archive.number(w.launcher_version);
}

template <typename Archive>
void fields(Archive& archive, std::pair<std::string, std::string>& variable) {
  archive.text(variable.first);
  archive.text(variable.second);
}

template <typename Archive>
void fields(Archive& archive, std::string& text) {
  archive.text(text);
}

template <typename Archive>
void fields(Archive& archive, int& number) {
  archive.number(number);
}

template <typename Archive>
void fields(Archive& archive, Start& m) {
  archive.text(m.spec.host);
  archive.list(m.spec.command);
  archive.text(m.spec.directory);
  archive.both(m.spec.common.get(), m.spec.environment);
  archive.list(m.spec.ranks);
  // The same for every rank, and long: once.
  archive.shared_addresses(m.spec.ranks);
  archive.list(m.spec.own_variables);
  archive.choice(m.spec.stdin_policy, StdinPolicy::none, StdinPolicy::rank0);
  archive.choice(m.spec.bind_to, BindTo::automatic, BindTo::none);
  archive.choice(m.spec.gpus, GpuMode::off, GpuMode::automatic);
  archive.duration(m.spec.failure_grace);
  archive.duration(m.spec.grace);
  archive.strong(m.spec.epoch);
  archive.raw(m.spec.secret);
  archive.text(m.spec.timeline_directory);
  archive.number(m.spec.output_window);
}

template <typename Archive>
void fields(Archive& archive, Signal& m) {
  archive.number(m.number);
}

template <typename Archive>
void fields(Archive& archive, Stop& m) {
  archive.strong(m.cause.rank);
  archive.choice(m.cause.cause, LossCause::none, kLastLossCause);
  archive.number(m.cause.detail);
  archive.text(m.host);
}

template <typename Archive>
void fields(Archive& archive, FeedStdin& m) {
  archive.rest(m.bytes);
}

template <typename Archive>
void fields(Archive& archive, OutputTaken& m) {
  archive.strong(m.rank);
  archive.number(m.bytes);
}

template <typename Archive>
void fields(Archive& archive, Covered& m) {
  archive.text(m.cover.group);
  archive.text(m.cover.reason);
}

template <typename Archive>
void fields(Archive& archive, Prepare& m) {
  archive.number(m.ports);
  archive.text(m.launcher_address);
  archive.duration(m.heartbeat);
  archive.flag(m.relayed);
}

template <typename Archive>
void fields(Archive& archive, Reach& m) {
  archive.number(m.host);
  archive.text(m.name);
  archive.list(m.program);
  archive.text(m.target);
  archive.text(m.known_as);
  archive.number(m.port);
  archive.text(m.user);
  archive.list(m.identities);
  archive.list(m.known_hosts);
  archive.text(m.global_known_hosts);
  archive.flag(m.accept_unknown);
  archive.text(m.command_line);
  archive.duration(m.heartbeat);
  archive.duration(m.patience);
}

template <typename Archive>
void fields(Archive& archive, Carry& m) {
  archive.number(m.host);
  archive.rest(m.frame);
}

template <typename Archive>
void fields(Archive& archive, Leave& m) {
  archive.number(m.host);
  archive.flag(m.at_once);
}

template <typename Archive>
void fields(Archive& archive, Reached& m) {
  archive.number(m.host);
  archive.text(m.address);
}

template <typename Archive>
void fields(Archive& archive, Step& m) {
  archive.number(m.host);
  archive.text(m.text);
}

template <typename Archive>
void fields(Archive& archive, Prepared& m) {
  archive.list(m.ports);
  archive.text(m.address);
  archive.text(m.interface);
}

template <typename Archive>
void fields(Archive& archive, Started& m) {
  archive.strong(m.rank);
  archive.number(m.pid);
}

template <typename Archive>
void fields(Archive& archive, Error& error) {
  archive.choice(error.code, Errc::invalid_argument, Errc::cancelled);
  archive.text(error.message);
}

template <typename Archive>
void fields(Archive& archive, Gone& m) {
  archive.number(m.host);
  fields(archive, m.error);
}

template <typename Archive>
void fields(Archive& archive, SpawnFailed& m) {
  archive.strong(m.rank);
  fields(archive, m.error);
}

template <typename Archive>
void fields(Archive& archive, Output& m) {
  archive.strong(m.rank);
  archive.choice(m.stream, Stream::out, Stream::err);
  archive.rest(m.bytes);
}

template <typename Archive>
void fields(Archive& archive, Exited& m) {
  archive.strong(m.exit.rank);
  archive.number(m.exit.wait_status);
  archive.flag(m.exit.core_dumped);
  archive.flag(m.exit.oom_killed);
  archive.flag(m.exit.attached);
  archive.flag(m.exit.undetached);
  archive.strong(m.exit.heard);
  archive.duration(m.exit.lived);
}

template <typename Archive>
void fields(Archive& archive, Finished& m) {
  archive.number(m.survivors);
}

template <typename Archive>
void fields(Archive& archive, Recorded& m) {
  archive.number(m.saved.ranks);
  archive.text(m.saved.directory);
  archive.text(m.saved.problem);
}

template <typename Archive>
void fields(Archive& archive, EndAsked& m) {
  archive.number(m.number);
}

template <typename Archive>
void fields(Archive& archive, Failed& m) {
  fields(archive, m.error);
}

template <typename Archive>
void fields(Archive& archive, timeline::LiveRow& row) {
  using timeline::LiveState;
  archive.number(row.rank);
  archive.number(row.pid);
  archive.choice(row.state, LiveState::starts, LiveState::ended);
  archive.text(row.tensor);
  archive.number(row.tensors);
  archive.number(row.for_ns);
  archive.list(row.missing);
  archive.real(row.operations_per_s);
  archive.real(row.bytes_per_s);
  archive.real(row.waiting);
  archive.number(row.lag_ns);
  archive.number(row.stalls);
  archive.number(row.lost);
}

template <typename Archive>
void fields(Archive& archive, Fetch& m) {
  archive.number(m.asker);
  archive.number(m.offset);
}

template <typename Archive>
void fields(Archive& archive, Viewed& m) {
  archive.text(m.problem);
  archive.list(m.rows);
}

template <typename Archive>
void fields(Archive& archive, Piece& m) {
  archive.number(m.asker);
  archive.number(m.offset);
  archive.number(m.size);
  archive.text(m.problem);
  archive.rest(m.bytes);
}

template <typename Archive>
void fields(Archive& archive, Roster::Agent& agent) {
  archive.text(agent.host);
  archive.list(agent.ranks);
}

template <typename Archive>
void fields(Archive& archive, Roster& m) {
  archive.text(m.job);
  archive.list(m.agents);
}

template <typename Archive>
void fields(Archive&, Look&) {}

template <typename Archive>
void fields(Archive&, Kill&) {}

template <typename Archive>
void fields(Archive&, Dismiss&) {}

template <typename Archive>
void fields(Archive&, CloseStdin&) {}

template <typename Archive>
void fields(Archive&, StdinRoom&) {}

template <typename Archive>
void fields(Archive&, Heartbeat&) {}

}  // namespace horo::launcher::protocol
