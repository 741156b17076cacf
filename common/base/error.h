#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace podqos {

/// Kind of a failure. Callers decide by it how to react; users read Error::message instead.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  ///< malformed, out of range, or rejected by a rule
  kNotFound,         ///< missing; often a normal answer (a cgroup that vanished)
  kAlreadyExists,    ///< present, but expected to be missing
  kPermission,       ///< EPERM, EACCES, EROFS
  kRefused,          ///< the configuration asks for a refusal; onError does not apply
  kConflict,         ///< has another owner: a foreign cgroup, a pod of another sandbox
  kTooLarge,         ///< exceeds a documented limit
  kCorrupt,          ///< a state file of podqos that cannot be parsed
  kBusy,             ///< EBUSY, ENOTEMPTY, or too much work for one call
  kTimeout,          ///< a deadline has passed
  kUnsupported,      ///< not supported by this machine, configuration or version
  kIo,               ///< every other errno
};

/// Returns the name of a code for logs and tests, e.g. "not-found".
[[nodiscard]] std::string_view format_error_code(ErrorCode code);

/// A failure: a code for callers and one sentence for users.
struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;

  /// Builds "<what>: <strerror(err)>" with the code for this errno.
  static Error from_errno(int err, std::string_view what);

  /// Prepends "<context>: ": the path, container or pod that the inner function did not know.
  [[nodiscard]] Error with_context(std::string_view context) &&;

  /// The message, for logs and users.
  [[nodiscard]] const std::string& to_string() const { return message; }

  friend bool operator==(const Error&, const Error&) = default;
};

/// A value or the reason why there is none.
template <class T>
using Result = std::expected<T, Error>;
/// Success without a value, or an error.
using Status = Result<void>;

/// Shorthand for a failing return: `return fail(ErrorCode::kCorrupt, "…")`.
[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}
/// Passes an existing error on.
[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected(std::move(error));
}
/// Fails with Error::from_errno(). Copy errno before any call that may change it.
[[nodiscard]] inline std::unexpected<Error> fail_errno(int err, std::string_view what) {
  return std::unexpected(Error::from_errno(err, what));
}

}  // namespace podqos

/// Evaluates a Result or Status and, if it is a failure, returns that from the enclosing function;
/// a value is dropped. A statement: `PODQOS_TRY(write_all(fd, text));`
#define PODQOS_TRY(...) PODQOS_TRY_AS(PODQOS_UNIQUE_NAME(__COUNTER__), __VA_ARGS__)

/// Evaluates a Result and declares a variable with its value or, if it is a failure, returns that
/// from the enclosing function: `PODQOS_ASSIGN(const auto text, read_file(path));`. Two statements,
/// so never the body of an `if` without braces. `auto&&` names the value where it is, and saves
/// moving it.
#define PODQOS_ASSIGN(declaration, ...) \
  PODQOS_ASSIGN_AS(PODQOS_UNIQUE_NAME(__COUNTER__), declaration, __VA_ARGS__)

// A name of its own for each use: they stand side by side in one block, and in lambdas within.
#define PODQOS_UNIQUE_NAME(number) PODQOS_JOIN(podqos_tried_, number)
#define PODQOS_JOIN(left, right) left##right
#define PODQOS_TRY_AS(name, ...) \
  if (auto name = (__VA_ARGS__); !name) return ::podqos::fail(std::move(name).error())
#define PODQOS_ASSIGN_AS(name, declaration, ...)             \
  auto name = (__VA_ARGS__);                                 \
  if (!name) return ::podqos::fail(std::move(name).error()); \
  declaration = *std::move(name)
