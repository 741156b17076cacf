// libdbus-1.a holds a server too, which asks systemd for its sockets. Without these two functions a
// program that has the archive in it would load libsystemd and six libraries more.

// Declared in libsystemd's sd-daemon.h, which is not needed to build podqos.
extern "C" int sd_listen_fds(int unset_environment);
extern "C" int sd_is_socket(int fd, int family, int type, int listening);

extern "C" int sd_listen_fds(int /*unset_environment*/) {
  return 0;
}
extern "C" int sd_is_socket(int /*fd*/, int /*family*/, int /*type*/, int /*listening*/) {
  return 0;
}
