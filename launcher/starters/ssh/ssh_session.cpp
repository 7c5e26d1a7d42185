// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/ssh_session.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "base/text/printable.hpp"

namespace horo::launcher {

namespace {

int refuse_passphrase(const char*, char*, size_t, int, int, void* locked) {
  *static_cast<bool*>(locked) = true;
  return -1;
}

bool exists(const std::string& path) {
  return access(path.c_str(), R_OK) == 0;
}

}  // namespace

SshSession::SshSession(const Libssh& library, const SshRoute& route, std::string address)
    : lib_(library), route_(route), address_(std::move(address)) {
  ssh_callbacks_init(&callbacks_);
  callbacks_.auth_function = refuse_passphrase;
  callbacks_.userdata = &locked_key_;
}

SshSession::~SshSession() {
  if (session_ == nullptr) return;
  if (channel_ != nullptr) lib_.ssh_channel_free(channel_);
  if (!socket_) lib_.ssh_disconnect(session_);
  lib_.ssh_free(session_);
}

Status SshSession::begin(UniqueFd socket, const std::string& command_line) {
  command_line_ = command_line;
  socket_ = std::move(socket);
  session_ = lib_.ssh_new();
  if (session_ == nullptr) return fail(Errc::out_of_memory, "an ssh session");
  lib_.ssh_set_blocking(session_, 0);
  lib_.ssh_set_callbacks(session_, &callbacks_);
  return set_options();
}

Status SshSession::set_options() {
  bool good = true;
  const auto set = [&](ssh_options_e option, const void* value) {
    good = good && lib_.ssh_options_set(session_, option, value) == SSH_OK;
  };
  const bool configured = false;  // The route already has the configuration's settings.
  const unsigned port = route_.port;
  const int descriptor = socket_.value();
  set(SSH_OPTIONS_PROCESS_CONFIG, &configured);
  set(SSH_OPTIONS_HOST, route_.known_as.c_str());
  set(SSH_OPTIONS_PORT, &port);
  set(SSH_OPTIONS_USER, route_.user.c_str());
  set(SSH_OPTIONS_FD, &descriptor);
  if (!route_.known_hosts.empty()) set(SSH_OPTIONS_KNOWNHOSTS, route_.known_hosts.front().c_str());
  if (!route_.global_known_hosts.empty())
    set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, route_.global_known_hosts.c_str());
  auto files = route_.known_hosts;
  files.push_back(route_.global_known_hosts);
  const bool is_alias = route_.known_as != route_.name;
  const auto types =
      wanted_key_types(lib_, files, route_.known_as, is_alias ? kUsualSshPort : route_.port);
  if (!types.empty()) set(SSH_OPTIONS_HOSTKEYS, types.c_str());
  // The library puts each in front of the others.
  for (auto file = route_.identities.rbegin(); file != route_.identities.rend(); ++file) {
    if (exists(*file)) set(SSH_OPTIONS_ADD_IDENTITY, file->c_str());
  }
  if (good) return {};
  return fail(Errc::invalid_argument, "libssh refuses an option: {}", library_error());
}

Result<SshSession::Progress> SshSession::advance() {
  while (step_ != Step::running) {
    HORO_TRY(const bool done, take_step());
    if (!done) return Progress::waiting;
  }
  return Progress::running;
}

/// Returns true when the next step can be taken at once.
Result<bool> SshSession::take_step() {
  switch (step_) {
    case Step::key_exchange: {
      const int code = lib_.ssh_connect(session_);
      static_cast<void>(socket_.release());  // The library closes it in every case.
      return finish_step(code, Step::host_key, "the key exchange");
    }
    case Step::host_key:
      HORO_TRY_STATUS(check_host_key());
      step_ = Step::first_login;
      return true;
    case Step::first_login:
      return log_in(lib_.ssh_userauth_none(session_, nullptr));
    case Step::login:
      return log_in(lib_.ssh_userauth_publickey_auto(session_, nullptr, nullptr));
    case Step::channel:
      if (channel_ == nullptr) channel_ = lib_.ssh_channel_new(session_);
      return finish_step(lib_.ssh_channel_open_session(channel_), Step::command,
                         "opening a channel");
    case Step::command:
      return finish_step(lib_.ssh_channel_request_exec(channel_, command_line_.c_str()),
                         Step::running, "starting a command");
    case Step::running:
      break;
  }
  return false;
}

Result<bool> SshSession::finish_step(int code, Step next, std::string_view doing) {
  if (code == SSH_AGAIN) return false;
  if (code != SSH_OK) return fail(Errc::unavailable, "{} failed: {}", doing, library_error());
  step_ = next;
  return true;
}

Result<bool> SshSession::log_in(int answer) {
  switch (answer) {
    case SSH_AUTH_AGAIN:
      return false;
    case SSH_AUTH_SUCCESS:
      step_ = Step::channel;
      return true;
    case SSH_AUTH_ERROR:
      return fail(Errc::unavailable, "logging in failed: {}", library_error());
    default:
      if (step_ == Step::login) return Failure(login_refused());
      if ((lib_.ssh_userauth_list(session_, nullptr) & SSH_AUTH_METHOD_PUBLICKEY) == 0)
        return Failure(login_refused());
      step_ = Step::login;
      return true;
  }
}

Error SshSession::login_refused() {
  if ((lib_.ssh_userauth_list(session_, nullptr) & SSH_AUTH_METHOD_PUBLICKEY) == 0) {
    return {Errc::permission_denied,
            fmt::format("it does not allow login by key; --ssh-program ssh tries other ways")};
  }
  std::string keys;
  for (const auto& file : route_.identities) {
    if (exists(file)) keys += fmt::format("{}{}", keys.empty() ? "" : ", ", file);
  }
  const bool agent = std::getenv("SSH_AUTH_SOCK") != nullptr;
  const auto tried = fmt::format("{}{}{}", agent ? "the ssh agent's keys" : "",
                                 agent && !keys.empty() ? ", " : "", keys);
  if (locked_key_) {
    return {Errc::permission_denied,
            fmt::format("it refuses user '{}', and a key needs a passphrase; load it into an "
                        "agent first: ssh-add (there are: {})",
                        route_.user, tried)};
  }
  return {Errc::permission_denied,
          fmt::format("it refuses user '{}' with {}; to let a key in: ssh-copy-id -p {} {}@{}",
                      route_.user, tried.empty() ? "no key at all" : tried, route_.port,
                      route_.user, route_.name)};
}

bool SshSession::find_host_key(unsigned port, KnownKey& found) {
  // An alias stands for host and port.
  const unsigned looked_up = route_.known_as == route_.name ? port : kUsualSshPort;
  lib_.ssh_options_set(session_, SSH_OPTIONS_PORT, &looked_up);
  for (const auto& file : route_.known_hosts) {
    lib_.ssh_options_set(session_, SSH_OPTIONS_KNOWNHOSTS, file.c_str());
    const auto answer = lib_.ssh_session_is_known_server(session_);
    if (answer == SSH_KNOWN_HOSTS_OK) return true;
    found = graver(found, answer);
  }
  return false;
}

/// As ssh does: in all files of known hosts, and a host at another port than 22 may be known
/// without its port.
KnownKey SshSession::look_up_host_key() {
  if (route_.known_hosts.empty()) return lib_.ssh_session_is_known_server(session_);
  KnownKey found = SSH_KNOWN_HOSTS_UNKNOWN;
  KnownKey ignored = SSH_KNOWN_HOSTS_UNKNOWN;
  bool known = find_host_key(route_.port, found);
  if (!known && found != SSH_KNOWN_HOSTS_CHANGED && found != SSH_KNOWN_HOSTS_ERROR &&
      route_.port != kUsualSshPort)
    known = find_host_key(kUsualSshPort, ignored);
  // A new key is added to the first file, with the port.
  const unsigned port = route_.known_as == route_.name ? route_.port : kUsualSshPort;
  lib_.ssh_options_set(session_, SSH_OPTIONS_PORT, &port);
  lib_.ssh_options_set(session_, SSH_OPTIONS_KNOWNHOSTS, route_.known_hosts.front().c_str());
  return known ? SSH_KNOWN_HOSTS_OK : found;
}

Status SshSession::check_host_key() {
  switch (look_up_host_key()) {
    case SSH_KNOWN_HOSTS_OK:
      return {};
    case SSH_KNOWN_HOSTS_CHANGED:
      return fail(
          Errc::permission_denied,
          "its host key differs from the one in {}: {}; an attacker may be in between. If the "
          "host was reinstalled: ssh-keygen -R '{}', then connect once by ssh",
          route_.known_hosts.empty() ? "the file of known hosts" : route_.known_hosts.front(),
          fingerprint(),
          route_.port == 22 ? route_.known_as
                            : fmt::format("[{}]:{}", route_.known_as, route_.port));
    case SSH_KNOWN_HOSTS_OTHER:
      return refuse_unknown(true);
    case SSH_KNOWN_HOSTS_NOT_FOUND:
    case SSH_KNOWN_HOSTS_UNKNOWN:
      if (route_.unknown_keys == UnknownKeys::refuse) return refuse_unknown(false);
      lib_.ssh_session_update_known_hosts(session_);
      return {};
    default:
      return fail(Errc::unavailable, "looking its key up among the known hosts failed: {}",
                  library_error());
  }
}

Status SshSession::refuse_unknown(bool other_type) {
  const auto file =
      route_.known_hosts.empty() ? std::string("~/.ssh/known_hosts") : route_.known_hosts.front();
  return fail(Errc::permission_denied,
              "its host key is unknown{}: {}; if that is its key: ssh-keyscan -p {} {} >> {}",
              other_type ? " (of another type than the known one)" : "", fingerprint(), route_.port,
              route_.known_as, file);
}

std::string SshSession::fingerprint() {
  ssh_key key = nullptr;
  if (lib_.ssh_get_server_publickey(session_, &key) != SSH_OK) return "of a form that is not known";
  std::string text = lib_.ssh_key_type_to_char(lib_.ssh_key_type(key));
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (lib_.ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    char* print = lib_.ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
    if (print != nullptr) text += fmt::format(" {}", print);
    lib_.ssh_string_free_char(print);
    lib_.ssh_clean_pubkey_hash(&hash);
  }
  lib_.ssh_key_free(key);
  return text;
}

std::string SshSession::library_error() const {
  // The server may have chosen the words, before its key was checked.
  const auto text = printable(lib_.ssh_get_error(session_));
  return text.empty() ? "the connection ended" : text;
}

std::string SshSession::step() const {
  switch (step_) {
    case Step::key_exchange:
    case Step::host_key:
      return fmt::format("key exchange with {}", address_);
    case Step::first_login:
    case Step::login:
      return fmt::format("logging in to {} as '{}'", address_, route_.user);
    case Step::channel:
    case Step::command:
    case Step::running:
      break;
  }
  return fmt::format("starting horo-agent on {}", address_);
}

bool SshSession::has_unsent() const {
  return (lib_.ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
}

Result<std::string_view> SshSession::read(Source source, char* buffer, std::size_t most) {
  const int got = lib_.ssh_channel_read_nonblocking(
      channel_, buffer, static_cast<std::uint32_t>(most), source == Source::errors ? 1 : 0);
  if (got == SSH_ERROR) return fail(Errc::unavailable, "the connection broke: {}", library_error());
  return std::string_view(buffer, static_cast<std::size_t>(std::max(got, 0)));
}

std::size_t SshSession::room() const {
  return has_unsent() ? 0 : lib_.ssh_channel_window_size(channel_);
}

Result<bool> SshSession::write(std::string_view bytes) {
  const int put =
      lib_.ssh_channel_write(channel_, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  if (put < 0) return false;
  if (put == static_cast<int>(bytes.size())) return true;
  return fail(Errc::unavailable, "the connection took {} bytes of {}", put, bytes.size());
}

void SshSession::end_input() {
  lib_.ssh_channel_send_eof(channel_);
}

void SshSession::kill_command() {
  if (step_ == Step::running) lib_.ssh_channel_request_send_signal(channel_, "KILL");
}

/// After the end of output, the library's reads process nothing that arrives any more; asking for
/// the exit code does, until it has arrived. Nothing that matters comes after both.
bool SshSession::ended() const {
  if (lib_.ssh_channel_is_closed(channel_) != 0) return true;
  const bool output_ended = lib_.ssh_channel_is_eof(channel_) != 0;
  return output_ended && (exit_code() || lib_.ssh_channel_is_closed(channel_) != 0);
}

std::optional<int> SshSession::exit_code() const {
  const int code = lib_.ssh_channel_get_exit_status(channel_);
  if (code < 0) return std::nullopt;
  return code;
}

}  // namespace horo::launcher
