// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/submitter.hpp"

#include <fmt/ranges.h>

#include "runtime/device/device_memory.hpp"
#include "runtime/engine/operations/recording.hpp"

namespace horo::runtime {

Submitter::Submitter(HostMemory& host, ProcessSets& sets, OperationTable& operations,
                     StallMonitor& stalls, CallNotes& calls, ProgressDriver& driver)
    : host_(host),
      sets_(sets),
      operations_(operations),
      stalls_(stalls),
      calls_(calls),
      driver_(driver),
      ticks_per_ns_(static_cast<double>(timeline::ticks_in(std::chrono::seconds(1))) * 1e-9) {}

Status Submitter::check_open() const {
  if (!closed_.load(std::memory_order_relaxed)) return {};
  return fail(Errc::shut_down, "horo_shutdown was called");
}

Result<ProcessSet*> Submitter::own_set(SetId id) const {
  auto* const set = sets_.find(id);
  if (set == nullptr) return fail(Errc::not_found, "there is no process set {}", id);
  if (!set->member()) {
    return fail(Errc::invalid_argument, "rank {} is not in process set {} (ranks {})",
                host_.global_rank(host_.me()), id, fmt::join(set->ranks, ", "));
  }
  return set;
}

Result<TensorHandle> Submitter::declare(SetId set, std::string_view name,
                                        const Signature& signature, const GroupName& group) {
  HORO_TRY_STATUS(check_open());
  HORO_TRY(ProcessSet* const own, own_set(set));
  if (signature.kind == Kind::broadcast && own->rank_of(Rank{signature.root}) < 0) {
    return fail(Errc::invalid_argument, "root rank {} is not in process set {}", signature.root,
                set);
  }
  if (fuses_groups_ || !group.exists())
    return own->engine->claims().declare(name, signature, group);
  auto alone = signature;
  set_fusion_class(alone, group.name);
  return own->engine->claims().declare(name, alone, group);
}

Submitter::Urgency Submitter::urgency_of(Board& board, std::uint64_t bytes,
                                         std::uint64_t ticks) const {
  const auto full = board.tuning().fusion_threshold();
  const auto delay = board.tuning().wake_delay_ns();
  if (delay < kLateWakeNs && (bytes >= full || board.ready().bytes() >= full))
    return Urgency::everybody;
  // On this rank, threads other than the caller may wait for the tensor.
  if (host_.waker().anyone_waits())
    return driver_.needs_own_thread() ? Urgency::everybody : Urgency::peers;
  const auto since = board.ready().ready_since_or(ticks);
  // A time that another rank has written may be later than this one, which was read before.
  const auto waited = ticks > since ? ticks - since : 0;
  const auto longest = static_cast<std::uint64_t>(static_cast<double>(delay) * ticks_per_ns_);
  return waited >= longest ? Urgency::everybody : Urgency::none;
}

namespace {

std::string described(const OwnedBy& found) {
  switch (found.owner) {
    case MemoryOwner::host:
      return "host memory";
    case MemoryOwner::pinned:
      return "pinned host memory";
    case MemoryOwner::managed:
      return "managed memory";
    case MemoryOwner::device:
      break;
  }
  return fmt::format("memory of device {}", found.device);
}

/// The buffers are where the submission says. Managed memory is used as memory of the device, in
/// the order of its streams. Fails: invalid_argument.
Status check_owner(const Submission& given) {
  for (const void* const pointer : {given.in, static_cast<const void*>(given.out)}) {
    if (pointer == nullptr) continue;
    const auto found = owner_of(pointer);
    if (found.owner == MemoryOwner::managed || found.device == given.device) continue;
    const bool hosted = found.owner != MemoryOwner::device;
    return fail(Errc::invalid_argument, "the {} buffer at {} is {}, not memory of device {}; {}",
                pointer == given.in ? "input" : "output", pointer, described(found), given.device,
                hosted ? "declare and submit the tensor with HORO_MEMORY_HOST, when the device has "
                         "done its work on it"
                       : "name that device in the submission");
  }
  return {};
}

}  // namespace

Status Submitter::attach_device(ProcessSet& own, const Submission& given,
                                Operation& operation) const {
  if (devices_ == nullptr)
    return fail(Errc::unavailable, "this session moves no tensors in device memory");
  HORO_TRY(auto* const gpu, devices_->open(given.device));
  HORO_TRY_STATUS(check_owner(given));
  int used = -1;
  if (one_device_ && !own.device.compare_exchange_strong(used, given.device) &&
      used != given.device) {
    return fail(Errc::unsupported,
                "a tensor on device {}, but this rank's tensors in process set {} are on device "
                "{}; a rank uses one device in a set, or any number where all tensors pass through "
                "host memory (gpu.operations: staged)",
                given.device, own.id, used);
  }
  HORO_TRY(const bool capturing, gpu->device().is_capturing(given.stream));
  if (capturing) {
    return fail(Errc::unsupported,
                "the stream is being captured to a graph, which cannot hold this operation; submit "
                "outside the capture");
  }
  HORO_TRY(auto ready, gpu->event());
  HORO_TRY_STATUS(gpu->device().record(ready.get(), given.stream));
  operation.on_device = {.gpu = gpu, .ready = std::move(ready)};
  return {};
}

Status Submitter::claim(ProcessSet& own, const SetSubmission& s, Operation& operation) const {
  auto& claims = own.engine->claims();
  HORO_TRY(const auto id, claims.claim(s.tensor, s.given, operation));
  auto signature = claims.signature(id);
  signature.root = own.rank_of(Rank{signature.root});
  auto status = check(signature, s.given, own.rank_of(host_.global_rank(host_.me())),
                      static_cast<int>(own.ranks.size()));
  if (status && s.given.memory == MemoryKind::device) [[unlikely]]
    status = attach_device(own, s.given, operation);
  if (!status) claims.release(id, operation);
  return status;
}

Result<Operation*> Submitter::prepare(const SetSubmission& s, ProcessSet*& own) {
  HORO_TRY_STATUS(check_open());
  HORO_TRY(own, own_set(s.set));
  HORO_TRY_STATUS(own->engine->health());
  HORO_TRY(Operation* const operation, operations_.take());
  operation->set = s.set;
  operation->recorded_set = own->board->recorded_set();
  if (auto claimed = claim(*own, s, *operation); !claimed) {
    operations_.put(*operation);
    return Failure(std::move(claimed).error());
  }
  return operation;
}

void Submitter::launch(const Submission& given, Operation& operation, ProcessSet& own,
                       std::uint64_t ticks) {
  const auto id = operation.tensor;
  auto& claims = own.engine->claims();
  auto& board = *own.board;
  const auto now = calls_.note_call();
  record_submitted(operation.recorded_set, id, ticks);
  // Once it is submitted, the operation may be done at once, and the tensor another one's.
  const auto bytes = claims.signature(id).bytes();
  const bool completed = claims.submit(id, given, operation, ticks);
  const bool spans = board.leader_port() != nullptr;
  // Maybe no thread ever waits for it: then the thread that checks for stalls has to learn when.
  if (stalls_.arm(board, now)) host_.waker().ring(spans ? LocalRank{0} : host_.me());
  const auto urgency = completed ? urgency_of(board, bytes, ticks) : Urgency::none;
  if (spans) {
    if (completed) tell_other_hosts(own, urgency);
  } else if (urgency != Urgency::none) {
    cut(board, urgency, ticks);
  }
}

void Submitter::cut(Board& board, Urgency urgency, std::uint64_t ticks) {
  using Self = SetBells::Self;
  const auto& bells = board.bells();
  // This rank's own thread may sleep on: mostly the caller is about to wait, and if not, a peer
  // that lacks this rank's share rings.
  if (board.cutter()->cut(ticks)) {
    const auto self = urgency == Urgency::everybody ? Self::too : Self::spared;
    driver_.count_wakes(bells.wake(interest::kEntries, self));
  }
  // Whoever waits for a tensor that finds no room sleeps until an entry is published: the members
  // that keep the log full must run, and this rank may be one of them.
  if (board.ready().has_ready() && !board.log().has_room())
    driver_.count_wakes(bells.wake_laggards(SetBells::For::room, Self::too));
}

void Submitter::tell_other_hosts(ProcessSet& own, Urgency urgency) {
  // Other hosts may wait for the tensor even if this one does not: it never stays here for long. A
  // leader in another process wakes up so late by itself that it finds more than this tensor.
  if (urgency == Urgency::none && tree_->leads()) {
    tree_->look_soon(Duration(own.board->tuning().wake_delay_ns()));
  } else {
    own.engine->call_leader();
  }
}

Result<Operation*> Submitter::submit(const SetSubmission& submission) {
  // The clock is read once for all uses, and early, so that other work hides its latency.
  const auto ticks = timeline::ticks_now(by_processor_);
  ProcessSet* own = nullptr;
  HORO_TRY(Operation* const operation, prepare(submission, own));
  launch(submission.given, *operation, *own, ticks);
  return operation;
}

Status Submitter::submit_all(std::span<const SetSubmission> submissions,
                             std::vector<Operation*>& operations) {
  std::vector<ProcessSet*> sets(submissions.size());
  operations.clear();
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    auto operation = prepare(submissions[i], sets[i]);
    if (operation) {
      operations.push_back(*operation);
      continue;
    }
    while (!operations.empty()) {
      const auto last = operations.size() - 1;
      sets[last]->engine->claims().release(operations[last]->tensor, *operations[last]);
      operations_.put(*operations[last]);
      operations.pop_back();
    }
    return Failure(std::move(operation).error());
  }
  for (std::size_t i = 0; i < submissions.size(); ++i)
    launch(submissions[i].given, *operations[i], *sets[i], timeline::ticks_now(by_processor_));
  return {};
}

}  // namespace horo::runtime
