#include "common/base/error.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/text.h"

namespace podqos {

std::string_view format_error_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid-argument";
    case ErrorCode::kNotFound: return "not-found";
    case ErrorCode::kAlreadyExists: return "already-exists";
    case ErrorCode::kPermission: return "permission";
    case ErrorCode::kRefused: return "refused";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kTooLarge: return "too-large";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kBusy: return "busy";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kIo: return "io";
  }
  return "io";
}

namespace {

ErrorCode code_for_errno(int err) {
  switch (err) {
    case ENOENT:
    case ENODEV:
    case ESRCH: return ErrorCode::kNotFound;
    case EEXIST: return ErrorCode::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS: return ErrorCode::kPermission;
    case EBUSY:
    case ENOTEMPTY: return ErrorCode::kBusy;
    case ETIMEDOUT: return ErrorCode::kTimeout;
    case EINVAL:
    case ENAMETOOLONG:
    case ERANGE: return ErrorCode::kInvalidArgument;
    case ELOOP:
    case EXDEV: return ErrorCode::kConflict;
    case ENOSYS:
    case EOPNOTSUPP: return ErrorCode::kUnsupported;
    case E2BIG:
    case EFBIG: return ErrorCode::kTooLarge;
    default: return ErrorCode::kIo;
  }
}

}  // namespace

Error Error::from_errno(int err, std::string_view what) {
  std::array<char, 128> buffer{};
  // GNU strerror_r. It looks up no locale, since podqos never calls setlocale.
  const char* text = ::strerror_r(err, buffer.data(), buffer.size());
  return Error{code_for_errno(err), cat(what, ": ", text)};
}

Error Error::with_context(std::string_view context) && {
  message = cat(context, ": ", message);
  return std::move(*this);
}

}  // namespace podqos
