#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace podqos {

/// What kind of failure it was; decides how a caller reacts, never what a person reads.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  ///< input that breaks a rule: malformed, out of range, refused by policy
  kNotFound,         ///< the thing is not there; often a normal answer (a cgroup that vanished)
  kAlreadyExists,    ///< the thing is there and was not expected to be
  kPermission,       ///< EPERM, EACCES, EROFS
  kRefused,          ///< the operator asked for a refusal: it stands whatever onError says
  kConflict,         ///< belongs to somebody else: a foreign cgroup, another sandbox's pod
  kTooLarge,         ///< exceeds a stated limit
  kCorrupt,          ///< state of our own that cannot be read
  kBusy,             ///< EBUSY, ENOTEMPTY
  kTimeout,          ///< a deadline has passed
  kUnsupported,      ///< this machine lacks it
  kIo,               ///< every other errno
};

/// Name of a code for logs and tests, e.g. "not-found".
[[nodiscard]] std::string_view format_error_code(ErrorCode code);

/// A failure: a code for the program and one sentence for a person.
struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;

  /// Builds "<what>: <strerror(err)>" with the code that fits errno.
  static Error from_errno(int err, std::string_view what);

  /// Puts "<context>: " in front: the path, container or pod that the inner code did not know.
  [[nodiscard]] Error with_context(std::string_view context) &&;

  [[nodiscard]] const std::string& to_string() const { return message; }

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

/// Shorthand for a failing return: `return fail(ErrorCode::kCorrupt, "…")`.
[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}
[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected(std::move(error));
}
[[nodiscard]] inline std::unexpected<Error> fail_errno(int err, std::string_view what) {
  return std::unexpected(Error::from_errno(err, what));
}

}  // namespace podqos
