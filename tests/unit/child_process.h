#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

namespace podqos {

/// Starts a child that runs `body` and ends with status 0, or 1 if an expectation failed in it.
template <class Body>
[[nodiscard]] pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child > 0) return child;
  // A child that is meant to die by a signal leaves no core file.
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  body();
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

/// @return the status of wait(2).
[[nodiscard]] inline int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) std::abort();
  return status;
}

template <class Body>
[[nodiscard]] int run_in_child(Body body) {
  return wait_for(start_child(body));
}

/// Runs `body` in a child, whose expectations are those of the test.
template <class Body>
void expect_in_child(Body body) {
  EXPECT_EQ(run_in_child(body), 0);
}

/// What one process waits for in another one: a word, once.
class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_.data()) != 0) std::abort();
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void tell() const {
    if (::write(ends_[1], "x", 1) != 1) std::abort();
  }
  void await() const {
    char byte = 0;
    if (::read(ends_[0], &byte, 1) != 1) std::abort();
  }

 private:
  std::array<int, 2> ends_{};
};

/// In a child only: mounts a small tmpfs that nobody else sees and that goes with the process.
[[nodiscard]] inline bool mount_private_tmpfs(const char* path, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("podqos-test", path, "tmpfs", 0, options) == 0;
}

}  // namespace podqos
