// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/whole_job.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>

#include "apps/timeline_view/elsewhere.hpp"
#include "apps/timeline_view/launcher_link.hpp"
#include "apps/timeline_view/verdict.hpp"

namespace horo::apps {

namespace protocol = launcher::protocol;
using launcher::Fetch;
using launcher::Look;
using launcher::Piece;
using launcher::Viewed;

namespace {

constexpr std::size_t kAtOnce = 64;  ///< Agents that a snapshot is fetched from.
constexpr int kOnTheWay = 4;         ///< Pieces of each.
constexpr Duration kSilence = std::chrono::seconds(10);
constexpr std::size_t kHeadBytes = 12;  ///< Before a rank's file: its number, its size.
constexpr std::size_t kMostProblems = 4;

TimePoint now() {
  return SteadyClock::instance().now();
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8U * i);
  return number;
}

/// The files of one agent's ranks, from the pieces of its snapshot.
class Incoming {
 public:
  Incoming(const std::string& folder, const protocol::Roster::Agent& from)
      : folder_(folder), from_(from) {}

  Status take(std::string_view bytes) {
    while (!bytes.empty()) {
      if (left_ == 0) {
        const auto count = std::min(kHeadBytes - head_.size(), bytes.size());
        head_.append(bytes.substr(0, count));
        bytes.remove_prefix(count);
        if (head_.size() < kHeadBytes) break;
        HORO_TRY_STATUS(open_file());
        continue;
      }
      const auto count = std::min<std::uint64_t>(left_, bytes.size());
      file_.write(bytes.data(), static_cast<std::streamsize>(count));
      bytes.remove_prefix(count);
      left_ -= count;
      if (left_ == 0) file_.close();
      if (!file_) return fail(Errc::io, "'{}' cannot be written", path_);
      if (left_ == 0) ++ranks_;
    }
    return {};
  }

  int ranks() const { return ranks_; }

 private:
  Status open_file() {
    const auto rank = static_cast<int>(number_at(head_, 0, 4));
    left_ = number_at(head_, 4, 8);
    head_.clear();
    if (std::find(from_.ranks.begin(), from_.ranks.end(), rank) == from_.ranks.end() || left_ == 0)
      return fail(Errc::protocol, "host {} has sent what is no rank's file", from_.host);
    path_ = fmt::format("{}/rank.{}.timeline", folder_, rank);
    file_.open(path_, std::ios::binary | std::ios::trunc);
    if (!file_) return fail(Errc::io, "'{}' cannot be written", path_);
    return {};
  }

  const std::string& folder_;
  const protocol::Roster::Agent& from_;
  std::string head_;
  std::uint64_t left_ = 0;  ///< Of the file that is open.
  std::string path_;
  std::ofstream file_;
  int ranks_ = 0;
};

/// One agent's part of a snapshot, under way.
struct Download {
  Incoming files;
  std::optional<std::uint64_t> size;  ///< Not known before the first piece.
  std::uint64_t asked = 0;
  std::uint64_t taken = 0;
  TimePoint heard = now();
  std::string problem;

  bool over() const { return !problem.empty() || (size && taken == *size); }
};

/// "no view of h2: ..." for the first few.
void list_problems(const std::vector<std::string>& all, std::vector<std::string>& to) {
  std::set<std::string> seen;
  for (const auto& problem : all) {
    if (!seen.insert(problem).second) continue;
    if (seen.size() <= kMostProblems) to.push_back(problem);
  }
  if (seen.size() > kMostProblems)
    to.push_back(fmt::format("and so of {} more hosts", seen.size() - kMostProblems));
}

}  // namespace

class WholeJob::Impl {
 public:
  explicit Impl(std::unique_ptr<LauncherLink> link)
      : link_(std::move(link)), places_(link_->roster().agents.size()) {}

  void add_to(LiveView& view, Duration most);
  Result<Saved> save(const std::string& folder);

  bool ended() const { return link_->ended(); }

 private:
  /// An agent, as it was when it last answered.
  struct Place {
    bool waits = false;  ///< For the answer to a question.
    bool gone = false;   ///< It has no ranks any more, or not yet.
    std::optional<TimePoint> answered;
    Viewed view;
    std::string problem;
  };

  const protocol::Roster::Agent& agent(std::size_t at) const { return link_->roster().agents[at]; }

  void take_view(std::uint32_t at, const protocol::Message& message);
  void show(std::size_t at, LiveView& view, std::vector<std::string>& problems) const;
  void begin(std::uint32_t at, const std::string& folder);
  void ask_on(std::uint32_t at);
  void take_piece(std::uint32_t at, const protocol::Message& message);

  const std::unique_ptr<LauncherLink> link_;
  std::vector<Place> places_;
  std::map<std::uint32_t, Download> downloads_;
};

void WholeJob::Impl::take_view(std::uint32_t at, const protocol::Message& message) {
  auto& place = places_[at];
  if (const auto* view = std::get_if<Viewed>(&message)) {
    place.view = *view;
    place.answered = now();
    place.problem = view->problem;
    place.gone = false;
  } else if (const auto* gone = std::get_if<protocol::Gone>(&message)) {
    place.gone = true;
    place.problem = gone->error.message;
  } else {
    return;
  }
  place.waits = false;
}

void WholeJob::Impl::add_to(LiveView& view, Duration most) {
  std::set<int> known;
  for (const auto& row : view.rows) known.insert(row.rank);
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t at = 0; at < places_.size(); ++at) {
    const auto& ranks = agent(at).ranks;
    const bool here =
        std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return known.contains(rank); });
    if (!here) wanted.push_back(at);
  }
  for (const auto at : wanted) {
    if (std::exchange(places_[at].waits, true)) continue;
    link_->ask(at, Look{});
  }
  const auto all_told = [&] {
    return std::none_of(wanted.begin(), wanted.end(), [&](auto at) { return places_[at].waits; });
  };
  link_->pump(now() + most, all_told,
              [this](auto at, const auto& message) { take_view(at, message); });
  LiveView rest{.job = link_->roster().job};
  std::vector<std::string> problems;
  for (const auto& each : link_->roster().agents) rest.size += static_cast<int>(each.ranks.size());
  for (const auto at : wanted) show(at, rest, problems);
  join_views(view, rest);
  if (!ended()) list_problems(problems, view.problems);
  const auto& agents = link_->roster().agents;
  std::set<std::string> hosts;
  for (const auto& each : agents) hosts.insert(each.host);
  find_missing(view, hosts.size() == agents.size() ? Seen::by_host : Seen::by_rank);
}

void WholeJob::Impl::show(std::size_t at, LiveView& view,
                          std::vector<std::string>& problems) const {
  const auto& place = places_[at];
  const auto& host = agent(at).host;
  const auto age = place.answered ? now() - *place.answered : Duration{};
  for (auto row : place.view.rows) {
    row.host = host;
    if (place.waits) row.age_ns = age.count();
    if (place.gone) row.state = LiveState::ended;
    view.rows.push_back(std::move(row));
  }
  if (place.waits && place.answered) {
    problems.push_back(fmt::format("host {} has not answered for {}: its ranks as they were then",
                                   host, time_text(static_cast<double>(age.count()))));
  } else if (place.waits) {
    problems.push_back(fmt::format("host {} does not answer", host));
  } else if (!place.problem.empty() && !(place.gone && place.answered)) {
    problems.push_back(fmt::format("no view of host {}: {}", host, place.problem));
  }
}

void WholeJob::Impl::begin(std::uint32_t at, const std::string& folder) {
  downloads_.emplace(at, Download{.files = Incoming(folder, agent(at)), .size = {}, .problem = {}});
  link_->ask(at, Fetch{});
}

void WholeJob::Impl::ask_on(std::uint32_t at) {
  auto& download = downloads_.at(at);
  while (download.asked < *download.size &&
         download.asked - download.taken < std::uint64_t{kOnTheWay} * launcher::kPieceBytes) {
    link_->ask(at, Fetch{.offset = download.asked});
    download.asked += launcher::kPieceBytes;
  }
}

void WholeJob::Impl::take_piece(std::uint32_t at, const protocol::Message& message) {
  const auto found = downloads_.find(at);
  if (found == downloads_.end() || found->second.over()) return;
  auto& download = found->second;
  download.heard = now();
  if (const auto* gone = std::get_if<protocol::Gone>(&message)) {
    download.problem = gone->error.message;
    return;
  }
  const auto* piece = std::get_if<Piece>(&message);
  if (piece == nullptr) return;
  if (!piece->problem.empty() || piece->offset != download.taken ||
      (piece->bytes.empty() && piece->size != piece->offset)) {
    download.problem = piece->problem.empty() ? "a piece is missing" : piece->problem;
    return;
  }
  if (!download.size) download.asked = launcher::kPieceBytes;
  download.size = piece->size;
  download.taken += piece->bytes.size();
  if (auto taken = download.files.take(piece->bytes); !taken) {
    download.problem = taken.error().message;
    return;
  }
  if (!download.over()) ask_on(at);
}

Result<WholeJob::Saved> WholeJob::Impl::save(const std::string& folder) {
  Saved saved;
  std::vector<std::string> problems;
  std::uint32_t next = 0;
  while (!ended() && (next < places_.size() || !downloads_.empty())) {
    while (next < places_.size() && downloads_.size() < kAtOnce) begin(next++, folder);
    const auto any_over = [this] {
      return std::any_of(downloads_.begin(), downloads_.end(),
                         [](const auto& each) { return each.second.over(); });
    };
    link_->pump(now() + std::chrono::seconds(1), any_over,
                [this](auto at, const auto& message) { take_piece(at, message); });
    for (auto at = downloads_.begin(); at != downloads_.end();) {
      auto& download = at->second;
      if (!download.over() && now() - download.heard > kSilence) download.problem = "it is silent";
      if (!download.over()) {
        ++at;
        continue;
      }
      saved.ranks += download.files.ranks();
      if (!download.problem.empty())
        problems.push_back(fmt::format("host {}: {}", agent(at->first).host, download.problem));
      at = downloads_.erase(at);
    }
  }
  if (ended()) problems.emplace_back("the job has ended meanwhile");
  list_problems(problems, saved.problems);
  return saved;
}

Result<std::unique_ptr<WholeJob>> WholeJob::attach(const RunningLauncher& launcher) {
  HORO_TRY(auto link, LauncherLink::open(launcher));
  return std::unique_ptr<WholeJob>(new WholeJob(std::make_unique<Impl>(std::move(link))));
}

WholeJob::WholeJob(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WholeJob::~WholeJob() = default;

void WholeJob::add_to(LiveView& view, Duration most) {
  impl_->add_to(view, most);
}

bool WholeJob::ended() const {
  return impl_->ended();
}

Result<WholeJob::Saved> WholeJob::save(const std::string& folder) {
  return impl_->save(folder);
}

}  // namespace horo::apps
