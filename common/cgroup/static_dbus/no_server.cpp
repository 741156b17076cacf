// libdbus-1.a contains a server too, which asks systemd for its sockets. Without these two stubs a
// program linked with the archive would load libsystemd and six more libraries.

// Declared in sd-daemon.h of libsystemd, which is not needed to build podqos.
extern "C" int sd_listen_fds(int unset_environment);
extern "C" int sd_is_socket(int fd, int family, int type, int listening);

extern "C" int sd_listen_fds(int /*unset_environment*/) {
  return 0;
}
extern "C" int sd_is_socket(int /*fd*/, int /*family*/, int /*type*/, int /*listening*/) {
  return 0;
}
