// Stubs of functions that libdbus references and podqos never calls, for static programs only.
//
// libdbus-1.a contains a server too, which looks up users and host names. In a static program
// glibc's implementations would load NSS libraries of the machine it runs on, in whatever version,
// and the system call filter would kill the process. These stubs precede glibc in the link order,
// so that the program contains no code that reads nsswitch.conf, /etc/passwd or the resolver's
// files.

#include <sys/types.h>

#include <cerrno>
#include <cstddef>

#include <grp.h>
#include <netdb.h>
#include <pwd.h>

extern "C" int getpwnam_r(const char* /*name*/, passwd* /*entry*/, char* /*buffer*/,
                          size_t /*size*/, passwd** result) {
  *result = nullptr;
  return ENOENT;
}
extern "C" int getpwuid_r(uid_t /*uid*/, passwd* /*entry*/, char* /*buffer*/, size_t /*size*/,
                          passwd** result) {
  *result = nullptr;
  return ENOENT;
}
extern "C" int getgrouplist(const char* /*user*/, gid_t /*group*/, gid_t* /*groups*/, int* count) {
  *count = 0;
  return 0;
}

extern "C" int getaddrinfo(const char* /*node*/, const char* /*service*/, const addrinfo* /*hints*/,
                           addrinfo** result) {
  *result = nullptr;
  return EAI_FAIL;
}
extern "C" void freeaddrinfo(addrinfo* /*list*/) {}
// NOLINTNEXTLINE(readability-function-size): POSIX gave it seven parameters
extern "C" int getnameinfo(const sockaddr* /*address*/, socklen_t /*size*/, char* /*host*/,
                           socklen_t /*host_size*/, char* /*service*/, socklen_t /*service_size*/,
                           int /*flags*/) {
  return EAI_FAIL;
}
