// SPDX-License-Identifier: Apache-2.0
// How a launch moves data, in the thread of its stream.
//
// A collective is cut into steps. In each, every rank shows a piece of its input in its slot, waits
// until all have, reads what it needs, and says so; a slot is written again when all have said so.
// A message goes through the mailbox of its pair in pieces.
#include "tests/software_device/nccl/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>

#include <fmt/format.h>

#include "tests/software_device/nccl/device_library.hpp"
#include "tests/software_device/nccl/nccl_element.hpp"
#include "tests/software_device/nccl/plan.hpp"

namespace horo::software_nccl {

namespace {

constexpr std::size_t kMostDevices = 64;

const char* name(Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "reduce",         "broadcast",
                                    "all-gather", "reduce-scatter", "message"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const Operation& what) {
  return fmt::format("{} of {} elements of type {} by {} with root {}", name(what.kind), what.count,
                     what.type, what.op, what.root);
}

/// Not empty when two ranks had started different numbers of collectives of another communicator:
/// on a device, two kernels that wait for each other would then never end.
std::string other_order(const Operation& own, const Operation& theirs, int rank, int their_rank) {
  for (std::uint32_t o = 0; o < own.others; ++o) {
    for (std::uint32_t t = 0; t < theirs.others; ++t) {
      const auto& mine = own.other.at(o);
      const auto& other = theirs.other.at(t);
      if (mine.communicator != other.communicator || mine.started == other.started) continue;
      return fmt::format(
          "two communicators are used in two orders: a {} began after {} collectives of another "
          "one "
          "on rank {}, and after {} on rank {}",
          name(own.kind), mine.started, rank, other.started, their_rank);
    }
  }
  return "";
}

/// A call, and where its spans are.
struct Piece {
  Call call;
  std::size_t in = 0;
  std::size_t out = 0;
  std::uint64_t moved = 0;  ///< Bytes of a message.
};

class Launch {
 public:
  Launch(std::shared_ptr<Communicator> communicator, const std::vector<Call>& calls)
      : communicator_(std::move(communicator)), ranks_(communicator_->place().ranks) {
    for (const auto& call : calls) add(call);
  }

  std::vector<horo_software_device_span>& spans() { return spans_; }

  std::uint64_t collectives() const { return collectives_.size(); }

  /// After this, the launch may run.
  void start() {
    for (auto* const list : {&collectives_, &messages_}) {
      for (auto& piece : *list)
        Communicators::instance().describe_others(*communicator_, piece.call.what);
    }
  }

  void set_ticket(std::uint64_t ticket) { ticket_ = ticket; }

  void run() {
    if (communicator_->begin(ticket_) && enter_room()) {
      if (meets_fate()) {
        for (auto& piece : collectives_) {
          if (!move(piece)) break;
        }
        exchange();
      }
      leave_room();
    }
    communicator_->end();
  }

 private:
  std::uint64_t in_bytes(const Call& call) const {
    const auto& what = call.what;
    const bool root = what.root == communicator_->place().rank;
    if (what.kind == Kind::send && call.receives) return 0;
    if (what.kind == Kind::broadcast && !root) return 0;
    const auto bytes = what.count * size_of(what.type);
    return what.kind == Kind::reduce_scatter ? bytes * static_cast<std::uint64_t>(ranks_) : bytes;
  }

  std::uint64_t out_bytes(const Call& call) const {
    const auto& what = call.what;
    const bool root = what.root == communicator_->place().rank;
    if (what.kind == Kind::send && !call.receives) return 0;
    if (what.kind == Kind::reduce && !root) return 0;
    const auto bytes = what.count * size_of(what.type);
    return what.kind == Kind::all_gather ? bytes * static_cast<std::uint64_t>(ranks_) : bytes;
  }

  void add(const Call& call) {
    if (call.what.count == 0) return;
    Piece piece{.call = call, .in = spans_.size(), .out = spans_.size() + 1};
    spans_.push_back({call.in, in_bytes(call), 0, nullptr});
    spans_.push_back({call.out, out_bytes(call), 1, nullptr});
    (call.what.kind == Kind::send ? messages_ : collectives_).push_back(piece);
  }

  std::byte* memory(std::size_t span) const { return static_cast<std::byte*>(spans_[span].alias); }

  /// Launches that run on this launch's device now.
  std::atomic<int>& running() const {
    static std::array<std::atomic<int>, kMostDevices> all{};
    return all.at(static_cast<std::size_t>(communicator_->place().device) % kMostDevices);
  }

  /// Blocks: until the device has room. False: the communicator was aborted.
  bool enter_room() const {
    const int room = Plan::instance().room();
    return communicator_->await([this, room] {
      auto now = running().load();
      while (room == 0 || now < room) {
        if (running().compare_exchange_weak(now, now + 1)) return true;
      }
      return false;
    });
  }

  void leave_room() const {
    --running();
    Communicators::instance().ring(communicator_->place().device);
  }

  /// False when the launch ends here by the plan.
  bool meets_fate() {
    const auto fate = Plan::instance().begin_launch();
    if (fate.async != kSuccess) communicator_->fail(fate.async);
    return fate.async == kSuccess && !fate.hangs ? true : hang();
  }

  bool hang() const {
    return communicator_->await([] { return false; });
  }

  /// Both ranks must have made the same call. Else NCCL hangs or damages memory; here that is
  /// found, and the launch hangs.
  bool agrees(const Operation& own, const Operation& theirs, int rank) {
    if (own.kind != theirs.kind || own.type != theirs.type || own.count != theirs.count ||
        own.op != theirs.op || own.root != theirs.root) {
      return misused(fmt::format("{} on rank {}, and {} on rank {}", describe(own),
                                 communicator_->place().rank, describe(theirs), rank));
    }
    const auto order = other_order(own, theirs, communicator_->place().rank, rank);
    return order.empty() || misused(order);
  }

  bool misused(const std::string& how) {
    Plan::instance().find(fmt::format("communicator {}: {}", communicator_->place().id, how));
    communicator_->fail(kInvalidUsage);
    return hang();
  }

  // -- Collectives --------------------------------------------------------------------------------

  bool move(const Piece& piece) {
    const auto element = size_of(piece.call.what.type);
    const auto total = piece.call.what.kind == Kind::reduce_scatter
                           ? piece.call.what.count * static_cast<std::uint64_t>(ranks_)
                           : piece.call.what.count;
    const auto most = kSlotBytes / element;
    for (std::uint64_t begin = 0; begin < total; begin += most) {
      if (!step(piece, begin, std::min(most, total - begin))) return false;
    }
    return true;
  }

  /// The elements from `begin` on.
  bool step(const Piece& piece, std::uint64_t begin, std::uint64_t count) {
    const auto& memory = communicator_->memory();
    auto& own = memory.slot(communicator_->place().rank);
    const auto& what = piece.call.what;
    const auto element = size_of(what.type);
    const auto number = ++communicator_->steps;
    if (!await_all(&Slot::seen, number - 1)) return false;
    own.operation = what;
    if (spans_[piece.in].bytes != 0)
      std::memcpy(own.data, this->memory(piece.in) + begin * element, count * element);
    own.shown = number;
    memory.ring();
    if (!await_all(&Slot::shown, number)) return false;
    for (int r = 0; r < ranks_; ++r) {
      if (!agrees(what, memory.slot(r).operation, r)) return false;
    }
    if (spans_[piece.out].bytes != 0) take(piece, begin, count);
    own.seen = number;
    memory.ring();
    return true;
  }

  bool await_all(std::atomic<std::uint64_t> Slot::*count, std::uint64_t number) {
    return communicator_->await([&] {
      for (int r = 0; r < ranks_; ++r) {
        if ((communicator_->memory().slot(r).*count).load() < number) return false;
      }
      return true;
    });
  }

  void take(const Piece& piece, std::uint64_t begin, std::uint64_t count) {
    const auto& what = piece.call.what;
    const auto element = size_of(what.type);
    auto* const out = memory(piece.out);
    std::vector<const std::byte*> shown;
    for (int r = 0; r < ranks_; ++r) shown.push_back(communicator_->memory().slot(r).data);
    switch (what.kind) {
      case Kind::broadcast:
        std::memcpy(out + begin * element, shown[static_cast<std::size_t>(what.root)],
                    count * element);
        break;
      case Kind::all_gather:
        for (std::size_t r = 0; r < shown.size(); ++r)
          std::memcpy(out + (r * what.count + begin) * element, shown[r], count * element);
        break;
      case Kind::reduce_scatter: {
        const auto own = static_cast<std::uint64_t>(communicator_->place().rank) * what.count;
        const auto from = std::max(begin, own);
        const auto to = std::min(begin + count, own + what.count);
        if (from >= to) break;
        for (auto& source : shown) source += (from - begin) * element;
        reduce(out + (from - own) * element, shown, to - from, what.type, what.op);
        break;
      }
      case Kind::all_reduce:
      case Kind::reduce:
        reduce(out + begin * element, shown, count, what.type, what.op);
        break;
      case Kind::send:
        break;
    }
  }

  // -- Messages -----------------------------------------------------------------------------------

  void exchange() {
    const auto moves_all = [this] {
      bool all = true;
      for (auto& piece : messages_) {
        while (piece.moved < bytes_of(piece) &&
               (piece.call.receives ? receive(piece) : send(piece))) {
        }
        // Messages between two ranks arrive in their order, so a later one of the pair waits.
        all = all && piece.moved == bytes_of(piece);
      }
      return all || failed_;
    };
    if (!messages_.empty()) communicator_->await(moves_all);
    if (failed_) hang();
  }

  static std::uint64_t bytes_of(const Piece& piece) {
    return piece.call.what.count * size_of(piece.call.what.type);
  }

  /// Whether an earlier message in the same direction of the pair still moves.
  bool must_wait(const Piece& piece) const {
    for (const auto& other : messages_) {
      if (&other == &piece) return false;
      if (other.call.peer == piece.call.peer && other.call.receives == piece.call.receives &&
          other.moved < bytes_of(other))
        return true;
    }
    return false;
  }

  bool send(Piece& piece) {
    auto& box = communicator_->memory().mailbox(communicator_->place().rank, piece.call.peer);
    auto& count = communicator_->sent[static_cast<std::size_t>(piece.call.peer)];
    if (must_wait(piece) || box.received.load() < count) return false;
    const auto bytes = std::min<std::uint64_t>(kMailBytes, bytes_of(piece) - piece.moved);
    box.operation = piece.call.what;
    std::memcpy(box.data, memory(piece.in) + piece.moved, bytes);
    piece.moved += bytes;
    box.sent = ++count;
    communicator_->memory().ring();
    return true;
  }

  std::string mismatch(const Piece& piece, const Operation& theirs) const {
    const auto& own = piece.call.what;
    const int rank = communicator_->place().rank;
    if (own.count != theirs.count || own.type != theirs.type) {
      return fmt::format("rank {} sends {}, and rank {} receives {}", piece.call.peer,
                         describe(theirs), rank, describe(own));
    }
    return other_order(own, theirs, rank, piece.call.peer);
  }

  bool receive(Piece& piece) {
    auto& box = communicator_->memory().mailbox(piece.call.peer, communicator_->place().rank);
    auto& count = communicator_->received[static_cast<std::size_t>(piece.call.peer)];
    if (failed_ || must_wait(piece) || box.sent.load() <= count) return false;
    if (const auto misuse = mismatch(piece, box.operation); !misuse.empty()) {
      Plan::instance().find(fmt::format("communicator {}: {}", communicator_->place().id, misuse));
      communicator_->fail(kInvalidUsage);
      failed_ = true;
      return false;
    }
    const auto bytes = std::min<std::uint64_t>(kMailBytes, bytes_of(piece) - piece.moved);
    std::memcpy(memory(piece.out) + piece.moved, box.data, bytes);
    piece.moved += bytes;
    box.received = ++count;
    communicator_->memory().ring();
    return true;
  }

  const std::shared_ptr<Communicator> communicator_;
  const int ranks_;
  std::uint64_t ticket_ = 0;
  std::vector<horo_software_device_span> spans_;
  std::vector<Piece> collectives_;
  std::vector<Piece> messages_;
  bool failed_ = false;
};

int start(const std::shared_ptr<Communicator>& communicator, void* stream,
          const std::vector<Call>& calls) {
  const auto* const device = device_library();
  if (device->of_stream(stream) != communicator->place().device) {
    Plan::instance().find(
        fmt::format("a communicator of device {} is used on a stream of device {}",
                    communicator->place().device, device->of_stream(stream)));
    return kInvalidArgument;
  }
  auto made = std::make_unique<Launch>(communicator, calls);
  if (made->spans().empty()) return kSuccess;
  made->start();
  made->set_ticket(communicator->take_ticket(made->collectives()));
  // On a broken device it ends at once, because nothing is awaited there.
  const auto run = [](void* argument, int) {
    const std::unique_ptr<Launch> own(static_cast<Launch*>(argument));
    own->run();
  };
  const int error =
      device->launch(stream, made->spans().data(), made->spans().size(), run, made.get());
  if (error != 0) {
    communicator->fail(kUnhandledCudaError);
    return kUnhandledCudaError;
  }
  static_cast<void>(made.release());
  return kSuccess;
}

/// A launch that starts behind the next one, by the plan.
class Held {
 public:
  static Held& instance() {
    static Held held;
    return held;
  }

  void keep(std::function<int()> launch) {
    const std::lock_guard lock(mutex_);
    launch_ = std::move(launch);
  }

  int start() {
    std::function<int()> launch;
    {
      const std::lock_guard lock(mutex_);
      launch.swap(launch_);
    }
    return launch ? launch() : kSuccess;
  }

 private:
  std::mutex mutex_;
  std::function<int()> launch_;
};

}  // namespace

int launch(const std::shared_ptr<Communicator>& communicator, void* stream,
           std::vector<Call> calls) {
  if (Plan::instance().swaps()) {
    Held::instance().keep([=] { return start(communicator, stream, calls); });
    return kSuccess;
  }
  const int error = start(communicator, stream, calls);
  const int held = Held::instance().start();
  return error != kSuccess ? error : held;
}

}  // namespace horo::software_nccl
