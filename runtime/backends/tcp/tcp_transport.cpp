// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_transport.hpp"

#include <cerrno>
#include <sys/eventfd.h>

namespace horo::runtime {

namespace {

std::vector<std::vector<kv::Address>> no_addresses(std::size_t rails, std::size_t members) {
  std::vector<std::vector<kv::Address>> none;
  none.resize(rails, std::vector<kv::Address>(members));
  return none;
}

}  // namespace

class TcpTransport::PostedMessage final : public PendingMessage {
 public:
  PostedMessage(WorkerSockets& sockets, const TransportMessage& message)
      : sockets_(sockets), transfer_(message) {}

  Status wait() override { return sockets_.wait(transfer_); }

  TcpTransfer& transfer() { return transfer_; }

 private:
  WorkerSockets& sockets_;
  TcpTransfer transfer_;
};

Result<std::unique_ptr<TcpTransport>> TcpTransport::make(std::shared_ptr<TcpEndpoint> endpoint,
                                                         const Communicator& communicator,
                                                         std::uint32_t workers) {
  std::unique_ptr<TcpTransport> made(new TcpTransport(std::move(endpoint), communicator));
  made->peers_.bell = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->peers_.bell) return fail_errno(errno, "eventfd");
  for (std::uint32_t l = 0; l < workers; ++l) {
    HORO_TRY(auto sockets, WorkerSockets::make(made->peers_, l));
    made->workers_.push_back(std::move(sockets));
  }
  made->endpoint_->add(made->peers_.token, *made);
  return made;
}

TcpTransport::TcpTransport(std::shared_ptr<TcpEndpoint> endpoint, const Communicator& communicator)
    : endpoint_(std::move(endpoint)),
      peers_{
          .secret = endpoint_->secret(),
          .encryption = endpoint_->encryption(),
          .token = set_token(endpoint_->secret(), communicator.name),
          .position = communicator.position,
          .members = communicator.members,
          .rails = endpoint_->rails(),
          .addresses = no_addresses(endpoint_->rails().size(), communicator.members.size()),
          .ended = std::vector<std::atomic<bool>>(communicator.members.size()),
          .timeout = communicator.timeout,
          .lost = {},
          .watch = [this](int socket, int rank) { endpoint_->watch(socket, peers_.token, rank); },
          .bell = {}} {
  for (int p = 0; p < communicator.size(); ++p) positions_[peers_.rank_of(p)] = p;
}

TcpTransport::~TcpTransport() {
  endpoint_->remove(peers_.token);
}

void TcpTransport::take_addresses() {
  const auto& contacts = endpoint_->contacts();
  for (const auto& [rank, position] : positions_) {
    const auto known = contacts.find(rank);
    if (known == contacts.end()) continue;
    const auto at = static_cast<std::size_t>(position);
    for (std::size_t r = 0; r < peers_.rails.size(); ++r)
      peers_.addresses[r][at] = known->second[r];
  }
}

void TcpTransport::begin_start(Duration limit, std::function<bool()> lost) {
  peers_.timeout = limit;
  peers_.patience = "HORO_START_TIMEOUT";
  peers_.lost = std::move(lost);
}

void TcpTransport::end_start(Duration timeout) {
  peers_.timeout = timeout;
  peers_.patience = "HORO_GLOO_TIMEOUT";
  peers_.lost = nullptr;
}

Result<std::unique_ptr<PendingMessage>> TcpTransport::send(const TransportMessage& message) {
  auto posted = std::make_unique<PostedMessage>(sockets_of(message), message);
  sockets_of(message).send(posted->transfer());
  return std::unique_ptr<PendingMessage>(std::move(posted));
}

Result<std::unique_ptr<PendingMessage>> TcpTransport::receive(const TransportMessage& message) {
  auto posted = std::make_unique<PostedMessage>(sockets_of(message), message);
  sockets_of(message).receive(posted->transfer());
  return std::unique_ptr<PendingMessage>(std::move(posted));
}

void TcpTransport::interrupt() {
  for (const auto& sockets : workers_) sockets->interrupt();
}

void TcpTransport::hang_up() {
  for (const auto& sockets : workers_) sockets->hang_up();
}

bool TcpTransport::adopt(int rank, std::uint32_t worker, ProvenSocket socket) {
  const auto position = positions_.find(rank);
  // The lower rank connects, and once.
  if (position == positions_.end() || rank >= endpoint_->me() || worker >= workers_.size() ||
      !adopted_.emplace(rank, worker).second)
    return false;
  return workers_[worker]->adopt(position->second, std::move(socket));
}

void TcpTransport::peer_closed(int rank) {
  const auto position = positions_.find(rank);
  if (position == positions_.end()) return;
  peers_.ended[static_cast<std::size_t>(position->second)].store(true);
  if (!workers_.empty()) workers_.front()->wake();
}

}  // namespace horo::runtime
