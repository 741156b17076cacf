#include "common/sys/unix_address.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/text.h"

namespace podqos::sys {

Result<UnixAddress> UnixAddress::make(std::string_view name) {
  UnixAddress out;
  const std::span<char> path{out.address_.sun_path};
  const bool abstract = name.starts_with('@');
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument,
                cat("\"", printable(name), "\" is not a socket address: ", why));
  };
  if (!abstract && !name.starts_with('/')) return refuse("expected an absolute path");
  // The last byte is the terminating zero of a path.
  if (name.size() >= path.size())
    return refuse(cat(name.size(), " bytes, at most ", path.size() - 1));
  if (name.contains('\0')) return refuse("it contains a zero byte");
  out.address_.sun_family = AF_UNIX;
  std::ranges::copy(name, path.begin());
  // An abstract name starts with a zero byte and ends where the size says; unix(7).
  if (abstract) path.front() = '\0';
  out.size_ =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return out;
}

}  // namespace podqos::sys
