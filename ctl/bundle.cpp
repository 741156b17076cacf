#include "ctl/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"

namespace podqos::ctl {

Result<std::string> annotate_config(std::string_view config, const StringMembers& annotations) {
  constexpr std::string_view kAnnotations = "annotations";
  // Rejects repeated members, which a runtime could read differently.
  PODQOS_TRY(codec::OciConfig::parse(config));
  PODQOS_ASSIGN(const auto tree, codec::parse_json_tree(config, {.bytes = codec::kMaxConfigSize,
                                                                 .values = codec::kUnbounded}));
  for (const auto& [key, value] : annotations) {
    const codec::JsonNode* const all = json_member(tree, kAnnotations);
    const codec::JsonNode* const present = all == nullptr ? nullptr : json_member(*all, key);
    if (present == nullptr) continue;
    if (present->kind == codec::JsonNode::Kind::kString && present->text == value) continue;
    return fail(ErrorCode::kConflict,
                cat("annotation ", key, " already exists with a different value, ",
                    json_shown(*present), ": remove it first"));
  }
  const Insertion insertion{.path = std::string{kAnnotations}, .members = annotations};
  PODQOS_ASSIGN(auto text, insert_members(config, tree, {&insertion, 1}, Syntax::kJson));
  // "Annotations", as runc takes it, would now be repeated.
  PODQOS_TRY(codec::OciConfig::parse(text));
  return text;
}

Status annotate_bundle(const std::string& directory, const StringMembers& annotations) {
  constexpr const char* kConfig = "config.json";
  constexpr mode_t kPermissions = 07777;  // set-uid and sticky included
  PODQOS_ASSIGN(const auto bundle, sys::Directory::open(directory));
  PODQOS_ASSIGN(const auto file, bundle.open_with_status(kConfig, O_RDONLY));
  const std::string name = cat(directory, "/", kConfig);
  PODQOS_ASSIGN(const auto text, sys::read_all(file.fd.get(), codec::kMaxConfigSize, name));
  auto changed = annotate_config(text, annotations);
  if (!changed) return fail(std::move(changed).error().with_context(name));
  if (*changed == text) return {};
  return sys::replace_file(bundle, kConfig, *changed,
                           {.uid = file.status.st_uid,
                            .gid = file.status.st_gid,
                            .mode = file.status.st_mode & kPermissions});
}

}  // namespace podqos::ctl
