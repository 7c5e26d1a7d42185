// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/resize_job.hpp"

#include <cerrno>
#include <string>
#include <string_view>

#include "apps/common/running_job/find_job.hpp"
#include "apps/common/running_job/launcher_link.hpp"
#include "apps/common/running_job/watch_options.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "discovery/host_list.hpp"

namespace horo::apps {

namespace {

using launcher::Resize;
using launcher::Resized;
using launcher::ResizeKind;

constexpr Duration kAnswerTimeout = std::chrono::seconds(10);

std::string_view name_of(ResizeKind kind) {
  return kind == ResizeKind::shrink ? "shrink" : "grow";
}

struct Request {
  std::string job;
  Resize wish;
};

/// Reads HOST or HOST:SLOTS into `wish`.
Status read_host(std::string_view text, Resize& wish) {
  discovery::HostSet hosts;
  HORO_TRY_STATUS(discovery::add_entry(hosts, text, 1));
  if (hosts.size() != 1)
    return fail(Errc::invalid_argument, "'{}' stands for {} hosts; name one", text, hosts.size());
  const auto& host = hosts.hosts().front();
  if (!host.user.empty()) {
    return fail(Errc::invalid_argument, "'{}' names a user; name the host as the job does", text);
  }
  wish.host = host.name;
  // An IPv6 address has brackets around its own colons.
  const auto bracket = text.rfind(']');
  const bool has_slots =
      text.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
  if (has_slots) wish.slots = host.slots;
  return {};
}

Result<Request> read_request(ResizeKind kind, const cli::Arguments& arguments) {
  const auto& words = arguments.rest;
  if (words.empty()) return fail(Errc::invalid_argument, "no host is named");
  if (words.size() > 2) {
    return fail(Errc::invalid_argument, "a job and a host are wanted, {} words are given",
                words.size());
  }
  Request request{.job = words.size() == 2 ? std::string(words.front()) : std::string(),
                  .wish = {.kind = kind, .dry_run = arguments.find("dry-run") != nullptr}};
  HORO_TRY_STATUS(read_host(words.back(), request.wish));
  return request;
}

Result<Resized> ask_launcher(const Request& request) {
  HORO_TRY(const auto found, find_job(request.job));
  if (!found.launcher) {
    return fail(Errc::not_found,
                "the launcher of job {} does not run on this host; use this command where horo run "
                "was started",
                found.id);
  }
  HORO_TRY(const auto link, LauncherLink::open(*found.launcher));
  link->send_wish(request.wish);
  link->pump(SteadyClock::instance().now() + kAnswerTimeout,
             [&link] { return link->resized().has_value(); }, {});
  if (link->resized()) {
    auto answer = *link->resized();
    answer.text = fmt::format("job {}: {}", found.id, answer.text);
    return answer;
  }
  return fail(Errc::unavailable, "the launcher of job {} {}", found.id,
              link->ended() ? "has ended" : "does not answer; is it stopped?");
}

int refuse(std::string_view program, std::string_view why) {
  log::error(program, "{}", printable(why));
  return exit_code::kFailure;
}

int finish(std::string_view program, std::string_view text) {
  if (write_out(text)) return exit_code::kOk;
  return refuse(program, fail_errno(errno, "standard output").take().message);
}

}  // namespace

int resize_job(ResizeKind kind, std::span<const char* const> words) {
  const auto program = name_of(kind);
  const auto& command = *cli::find_command(program);
  const auto usage = [program](const Error& error) {
    return usage_error(fmt::format("horo {}", program), error);
  };
  const auto arguments = parse_in_any_order(command, words);
  if (!arguments) return usage(arguments.error());
  if (arguments->find("help") != nullptr) return finish(program, cli::help_text(command));
  if (arguments->find("version") != nullptr) return finish(program, fmt::format("{}\n", version()));
  const auto request = read_request(kind, *arguments);
  if (!request) return usage(request.error());
  const auto answer = ask_launcher(*request);
  if (!answer) return refuse(program, answer.error().message);
  if (!answer->accepted) return refuse(program, answer->text);
  return finish(program, answer->text + "\n");
}

}  // namespace horo::apps
