#include "common/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/text.h"

namespace podqos {

std::string_view format_error_code(ErrorCode code) {
  // In the order of the enumerators.
  constexpr std::string_view kNames =
      "invalid-argument not-found already-exists permission refused conflict too-large corrupt "
      "busy "
      "timeout unsupported io";
  return word_at(kNames, static_cast<std::size_t>(code));
}

namespace {

ErrorCode code_for_errno(int err) {
  using enum ErrorCode;
  using Row = std::pair<int, ErrorCode>;
  constexpr std::array kCodes = std::to_array<Row>({
      {ENOENT, kNotFound},        {ENODEV, kNotFound},
      {ESRCH, kNotFound},         {EEXIST, kAlreadyExists},
      {EPERM, kPermission},       {EACCES, kPermission},
      {EROFS, kPermission},       {EBUSY, kBusy},
      {ENOTEMPTY, kBusy},         {ETIMEDOUT, kTimeout},
      {EINVAL, kInvalidArgument}, {ENAMETOOLONG, kInvalidArgument},
      {ERANGE, kInvalidArgument}, {ELOOP, kConflict},
      {EXDEV, kConflict},         {ENOSYS, kUnsupported},
      {EOPNOTSUPP, kUnsupported}, {E2BIG, kTooLarge},
      {EFBIG, kTooLarge},
  });
  const auto* known = std::ranges::find(kCodes, err, &Row::first);
  return known == kCodes.end() ? kIo : known->second;
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
