#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/sys/fd.h"

namespace podqos::nri {

enum class Signal : std::uint8_t {
  kStop,    ///< SIGTERM, SIGINT
  kReload,  ///< SIGHUP
};

/// The signals that the plugin acts on, as something to poll(2) for: while the object lives they
/// interrupt nothing. For programs of one thread.
class Signals {
 public:
  static Result<Signals> open();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  Signals(Signals&& other) noexcept = default;
  Signals& operator=(Signals&&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next one that has come; nullopt: none.
  [[nodiscard]] std::optional<Signal> read();

 private:
  Signals(sys::UniqueFd fd, const sigset_t& old_mask) : fd_(std::move(fd)), old_mask_(old_mask) {}
  sys::UniqueFd fd_;
  sigset_t old_mask_;
};

}  // namespace podqos::nri
