/* SPDX-License-Identifier: Apache-2.0 */
/* The lower limit for a launcher that uses ssh: bare logins with libssh, all at once, each with one
   command. Usage: bench_ssh_logins COMMAND HOST... ; keys, user and known hosts come from ~/.ssh.
 */
#include <errno.h>
#include <libssh/libssh.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char* command;

static int log_in(ssh_session session, const char* host) {
  const char* user = "root";
  char byte;
  ssh_channel channel;
  if (ssh_options_set(session, SSH_OPTIONS_HOST, host) != SSH_OK ||
      ssh_options_set(session, SSH_OPTIONS_USER, user) != SSH_OK ||
      ssh_options_set(session, SSH_OPTIONS_KEY_EXCHANGE, "curve25519-sha256") != SSH_OK ||
      ssh_connect(session) != SSH_OK ||
      ssh_session_is_known_server(session) != SSH_KNOWN_HOSTS_OK ||
      ssh_userauth_publickey_auto(session, NULL, NULL) != SSH_AUTH_SUCCESS)
    return -1;
  channel = ssh_channel_new(session);
  if (channel == NULL || ssh_channel_open_session(channel) != SSH_OK ||
      ssh_channel_request_exec(channel, command) != SSH_OK)
    return -1;
  while (ssh_channel_read(channel, &byte, 1, 0) > 0) {
  }
  return ssh_channel_get_exit_status(channel);
}

static void* run(void* host) {
  ssh_session session = ssh_new();
  int code = log_in(session, host);
  if (code != 0) fprintf(stderr, "%s: %d: %s\n", (const char*)host, code, ssh_get_error(session));
  ssh_disconnect(session);
  ssh_free(session);
  return code == 0 ? host : NULL;
}

int main(int argc, char** argv) {
  int failed = 0;
  pthread_t* threads;
  if (argc < 3) {
    fprintf(stderr, "usage: bench_ssh_logins COMMAND HOST...\n");
    return 2;
  }
  command = argv[1];
  threads = calloc((size_t)argc, sizeof *threads);
  if (threads == NULL || ssh_init() != SSH_OK) return 1;
  for (int i = 2; i < argc; ++i) {
    if (pthread_create(&threads[i], NULL, run, argv[i]) != 0) return 1;
  }
  for (int i = 2; i < argc; ++i) {
    void* done = NULL;
    pthread_join(threads[i], &done);
    failed += done == NULL;
  }
  free(threads);
  return failed != 0;
}
