// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/whole_job.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "apps/common/running_job/launcher_link.hpp"
#include "apps/common/running_job/snapshot_files.hpp"
#include "timeline/analysis/verdict.hpp"
#include "timeline/view/merge_views.hpp"

namespace horo::apps {

namespace protocol = launcher::protocol;
using launcher::Fetch;
using launcher::Look;
using launcher::Piece;
using launcher::Viewed;

namespace {

constexpr std::size_t kMostDownloads = 64;  ///< Agents that send a snapshot at the same time.
constexpr int kMostPieces = 4;              ///< Requested pieces of each agent at a time.
constexpr Duration kSilence = std::chrono::seconds(10);
constexpr std::size_t kMostProblems = 4;

TimePoint now() {
  return SteadyClock::instance().now();
}

/// The transfer of one agent's part of a snapshot.
struct Download {
  SnapshotFiles files;
  std::optional<std::uint64_t> size;  ///< Known from the first piece on.
  std::uint64_t asked = 0;
  std::uint64_t taken = 0;
  TimePoint heard = now();
  std::string problem;

  bool over() const { return !problem.empty() || (size && taken == *size); }
};

/// Adds the first few different problems, and the number of the others.
void list_problems(const std::vector<std::string>& all, std::vector<std::string>& to) {
  std::set<std::string> seen;
  for (const auto& problem : all) {
    if (!seen.insert(problem).second) continue;
    if (seen.size() <= kMostProblems) to.push_back(problem);
  }
  if (seen.size() > kMostProblems)
    to.push_back(fmt::format("and {} more hosts have problems", seen.size() - kMostProblems));
}

}  // namespace

class WholeJob::Impl {
 public:
  explicit Impl(std::unique_ptr<LauncherLink> link)
      : link_(std::move(link)), places_(link_->roster().agents.size()) {}

  void add_to(timeline::LiveView& view, Duration most);
  Result<Saved> save(const std::string& folder);

  bool ended() const { return link_->ended(); }

 private:
  /// The last known state of an agent.
  struct Place {
    bool waits = false;  ///< A question has not been answered yet.
    bool gone = false;   ///< The agent has no ranks any more, or none yet.
    std::optional<TimePoint> answered;
    Viewed view;
    std::string problem;
  };

  void ask_members(TimePoint until);

  const protocol::Roster::Agent& agent(std::size_t at) const { return link_->roster().agents[at]; }

  void take_view(std::uint32_t at, const protocol::Message& message);
  void show(std::size_t at, timeline::LiveView& view, std::vector<std::string>& problems) const;
  void show_gpus(std::size_t at, timeline::LiveView& view,
                 std::vector<std::string>& problems) const;
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

/// The agents and ranks of an elastic job change.
void WholeJob::Impl::ask_members(TimePoint until) {
  link_->ask_members();
  link_->pump(
      until, [this] { return link_->members().has_value(); },
      [this](auto at, const auto& message) { take_view(at, message); });
  places_.resize(std::max(places_.size(), link_->roster().agents.size()));
}

void WholeJob::Impl::add_to(timeline::LiveView& view, Duration most) {
  const auto until = now() + most;
  if (link_->roster().elastic) ask_members(until);
  int size = 0;
  for (const auto& each : link_->roster().agents) size += static_cast<int>(each.ranks.size());
  if (link_->members()) {
    view.members = link_->members()->now;
    timeline::keep_members(view, size);
  }
  std::set<int> known;
  for (const auto& row : view.rows) known.insert(row.rank);
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t at = 0; at < link_->roster().agents.size(); ++at) {
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
  link_->pump(until, all_told, [this](auto at, const auto& message) { take_view(at, message); });
  timeline::LiveView rest{.job = link_->roster().job, .size = size};
  std::vector<std::string> problems;
  for (const auto at : wanted) show(at, rest, problems);
  if (view.members) timeline::keep_members(rest, size);
  timeline::join_views(view, rest);
  if (!ended()) list_problems(problems, view.problems);
  const auto& agents = link_->roster().agents;
  std::set<std::string> hosts;
  for (const auto& each : agents) hosts.insert(each.host);
  timeline::find_missing(view, hosts.size() == agents.size() ? timeline::Observed::by_host
                                                             : timeline::Observed::by_rank);
}

void WholeJob::Impl::show(std::size_t at, timeline::LiveView& view,
                          std::vector<std::string>& problems) const {
  show_gpus(at, view, problems);
  const auto& place = places_[at];
  const auto& host = agent(at).host;
  const auto age = place.answered ? now() - *place.answered : Duration{};
  for (auto row : place.view.rows) {
    row.host = host;
    if (place.waits) row.age_ns = age.count();
    if (place.gone) row.state = timeline::LiveState::ended;
    view.rows.push_back(std::move(row));
  }
  if (place.waits && place.answered) {
    problems.push_back(
        fmt::format("host {} has not answered for {}: its ranks are shown as they were then", host,
                    timeline::time_text(static_cast<double>(age.count()))));
  } else if (place.waits) {
    problems.push_back(fmt::format("host {} does not answer", host));
  } else if (!place.problem.empty() && !(place.gone && place.answered)) {
    problems.push_back(fmt::format("no view of host {}: {}", host, place.problem));
  }
}

/// A host may have an agent for each of its ranks; each of them knows its own rank only.
void WholeJob::Impl::show_gpus(std::size_t at, timeline::LiveView& view,
                               std::vector<std::string>& problems) const {
  const auto& place = places_[at];
  const auto& host = agent(at).host;
  if (place.gone) return;
  for (const auto& gpu : place.view.gpus) {
    const auto known =
        std::find_if(view.gpus.begin(), view.gpus.end(), [&](const timeline::LiveGpu& other) {
          return other.host == host && other.index == gpu.index;
        });
    if (known != view.gpus.end()) {
      known->ranks.insert(known->ranks.end(), gpu.ranks.begin(), gpu.ranks.end());
    } else {
      view.gpus.push_back(gpu);
      view.gpus.back().host = host;
    }
  }
  if (!place.view.gpu_problem.empty())
    problems.push_back(fmt::format("GPUs of host {}: {}", host, place.view.gpu_problem));
}

void WholeJob::Impl::begin(std::uint32_t at, const std::string& folder) {
  downloads_.emplace(
      at, Download{.files = SnapshotFiles(folder, agent(at)), .size = {}, .problem = {}});
  link_->ask(at, Fetch{});
}

void WholeJob::Impl::ask_on(std::uint32_t at) {
  auto& download = downloads_.at(at);
  while (download.asked < *download.size &&
         download.asked - download.taken < std::uint64_t{kMostPieces} * launcher::kPieceBytes) {
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
    while (next < places_.size() && downloads_.size() < kMostDownloads) begin(next++, folder);
    const auto any_over = [this] {
      return std::any_of(downloads_.begin(), downloads_.end(),
                         [](const auto& each) { return each.second.over(); });
    };
    link_->pump(now() + std::chrono::seconds(1), any_over,
                [this](auto at, const auto& message) { take_piece(at, message); });
    for (auto at = downloads_.begin(); at != downloads_.end();) {
      auto& download = at->second;
      if (!download.over() && now() - download.heard > kSilence)
        download.problem = "the host stopped answering";
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

void WholeJob::add_to(timeline::LiveView& view, Duration most) {
  impl_->add_to(view, most);
}

bool WholeJob::ended() const {
  return impl_->ended();
}

Result<WholeJob::Saved> WholeJob::save(const std::string& folder) {
  return impl_->save(folder);
}

}  // namespace horo::apps
