// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "launcher/plan/job_request.hpp"

namespace horo::launcher {

namespace {

bool is_elastic(const JobRequest& request) {
  const auto& settings = request.settings;
  if (settings.get(knobs::kMinNp) != 0 || settings.get(knobs::kMaxNp) != 0) return true;
  return request.format == OutputFormat::horovod && !request.script.empty();
}

/// 0 stands for a number that another option gives. Alone it would leave the job an ordinary one,
/// though the user names an option of elastic jobs.
Status check_zeros(const Settings& settings) {
  for (const auto* knob : {&knobs::kMinNp, &knobs::kMaxNp}) {
    if (!settings.is_set(knob->text.key)) continue;
    const bool least = knob == &knobs::kMinNp;
    return fail(Errc::invalid_argument,
                "--{} 0 ({}) does not make the job elastic; give {}, or leave it out",
                least ? "min-np" : "max-np", settings.origin(knob->text.key).text(),
                least ? "the number of ranks with which the job goes on, 1 or more"
                      : "the largest number of ranks, or --min-np with the smallest");
  }
  return {};
}

Failure cannot(std::string_view what, std::string_view remedy) {
  return fail(Errc::invalid_argument,
              "an elastic job (--min-np, --max-np) cannot have {}; {}, or leave out the options of "
              "elastic jobs",
              what, remedy);
}

/// Options that decide what an elastic job decides while it runs.
Status check_options(const JobRequest& request) {
  const auto& settings = request.settings;
  switch (request.starter) {
    case RankStarter::agents:
      break;
    case RankStarter::mpirun:
      return cannot("--mpi: mpirun starts a fixed number of ranks", "let horo start the ranks");
    case RankStarter::jsrun:
      return cannot("--jsrun: it starts a fixed number of ranks", "let horo start the ranks");
  }
  if (request.saved_plan) return cannot("a saved plan (--plan)", "name the hosts with -H");
  if (settings.get(knobs::kStdin) == StdinMode::rank0)
    return cannot("--stdin rank0: rank 0 may be another process later", "let it read a file");
  if (settings.get(knobs::kMapBy) != MapBy::pack)
    return cannot("--map-by spread or host", "its ranks are packed");
  return {};
}

}  // namespace

Result<std::optional<ElasticSize>> elastic_size(const JobRequest& request) {
  if (!is_elastic(request)) {
    HORO_TRY_STATUS(check_zeros(request.settings));
    return std::optional<ElasticSize>{};
  }
  HORO_TRY_STATUS(check_options(request));
  const int least = request.settings.get(knobs::kMinNp);
  const int most = request.settings.get(knobs::kMaxNp);
  ElasticSize size{.most = most == 0 ? kMaxRanks : most, .limited = most != 0};
  size.np = request.np.value_or(least == 0 ? 1 : least);
  size.least = least == 0 ? size.np : least;
  if (size.least > size.np) {
    return fail(Errc::invalid_argument,
                "--min-np {} is more than -np {}; the job begins with -np ranks or more",
                size.least, size.np);
  }
  if (size.np > size.most) {
    return fail(Errc::invalid_argument,
                "--max-np {} is less than the {} ranks that the job begins with{}", size.most,
                size.np, request.np ? "; they are given by -np" : "");
  }
  return std::optional(size);
}

}  // namespace horo::launcher
