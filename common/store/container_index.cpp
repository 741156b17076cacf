#include "common/store/container_index.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/sys/atomic_file.h"

namespace podqos::store {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kLength = 16;  // of 64 bits
constexpr std::uint64_t kFnvOffset = 0xcbf2'9ce4'8422'2325;
constexpr std::uint64_t kFnvPrime = 0x0000'0100'0000'01b3;

}  // namespace

std::string index_name(std::string_view id) {
  std::uint64_t hash = kFnvOffset;
  for (const char byte : id) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= kFnvPrime;
  }
  std::string name(kLength, '0');
  for (std::size_t i = kLength; i-- > 0; hash >>= 4U)
    name[i] = kHexDigits[hash & 0xfU];
  return name;
}

bool is_index_name(std::string_view name) {
  return name.size() == kLength && name.find_first_not_of(kHexDigits) == std::string_view::npos;
}

Result<std::vector<std::string>> read_entries(const sys::Directory& index,
                                              const std::string& name) {
  std::vector<std::string> uids;
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(index.fd(), name.c_str(), target.data(), target.size());
  if (size < 0 && errno == ENOENT) return uids;
  if (size < 0 && errno == EINVAL) return fail(ErrorCode::kCorrupt, "not a symbolic link");
  if (size < 0) return fail_errno(errno, "readlink");
  std::string_view rest{target.data(), static_cast<std::size_t>(size)};
  while (!rest.empty()) {
    const std::string_view uid = rest.substr(0, rest.find('/'));
    if (auto valid = core::check_pod_uid(uid); !valid)
      return fail(ErrorCode::kCorrupt, std::move(valid).error().message);
    uids.emplace_back(uid);
    rest.remove_prefix(std::min(uid.size() + 1, rest.size()));
  }
  return uids;
}

Status add_entry(const sys::Directory& index, const IndexEntry& entry) {
  // Mostly the first of its name.
  if (::symlinkat(entry.uid.c_str(), index.fd(), entry.name.c_str()) == 0) return {};
  if (const int err = errno; err != EEXIST)
    return fail_errno(err, cat("link ", index.path(), "/", entry.name));
  PODQOS_ASSIGN(auto uids, read_entries(index, entry.name));
  if (std::ranges::find(uids, entry.uid) != uids.end()) return {};
  uids.push_back(entry.uid);
  return write_entries(index, entry.name, uids);
}

Status write_entries(const sys::Directory& index, const std::string& name,
                     const std::vector<std::string>& uids) {
  if (uids.empty()) {
    PODQOS_TRY(index.remove_file(name));
    return {};
  }
  std::string target;
  for (const std::string& uid : uids)
    target += cat(target.empty() ? "" : "/", uid);
  return sys::replace_link(index, name, target);
}

}  // namespace podqos::store
