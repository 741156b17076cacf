#pragma once

#include <csignal>
#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/sys/fd.h"

namespace podqos::nri {

/// The signals that the plugin handles, as a descriptor for poll(2). While the object exists they
/// are blocked. For programs with one thread.
class Signals {
 public:
  /// Blocks SIGTERM, SIGINT and SIGHUP, and opens a signalfd(2) for them.
  static Result<Signals> open();
  /// Restores the signal mask.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  Signals(Signals&& other) noexcept = default;
  Signals& operator=(Signals&&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next pending signal; nullopt: none.
  [[nodiscard]] std::optional<int> read();

 private:
  Signals(sys::UniqueFd fd, const sigset_t& old_mask) : fd_(std::move(fd)), old_mask_(old_mask) {}
  sys::UniqueFd fd_;
  sigset_t old_mask_;
};

}  // namespace podqos::nri
