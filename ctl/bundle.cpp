#include "ctl/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <ranges>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

/// All permission bits of st_mode, set-uid and sticky included.
constexpr mode_t kPermissions = 07777;
constexpr std::string_view kAnnotations = "annotations";

}  // namespace

Result<std::string> annotate_config(std::string_view config, const AnnotationList& annotations) {
  // Rejects repeated members, which a runtime could read differently.
  PODQOS_TRY(codec::OciConfig::parse(config));
  std::string text{config};
  const std::array path = {std::string{kAnnotations}};
  // In reverse, because each is inserted before the existing members.
  for (const auto& [key, value] : std::views::reverse(annotations)) {
    const codec::JsonTree tree = json_tree(text);
    const codec::JsonNode* const present = json_at(tree, std::array{path.front(), key});
    const bool is_text = present != nullptr && present->kind == codec::JsonNode::Kind::kString;
    if (is_text && present->text == value) continue;
    if (present != nullptr)
      return fail(ErrorCode::kConflict,
                  cat("annotation ", key, " already exists with a different value, ",
                      json_shown(*present), ": remove it first"));
    PODQOS_ASSIGN(auto changed, json_set(text, path, key, json_quote(value)));
    text = std::move(changed);
  }
  // "Annotations", as runc takes it, would now be repeated.
  PODQOS_TRY(codec::OciConfig::parse(text));
  return text;
}

Status annotate_bundle(const std::string& directory, const AnnotationList& annotations) {
  PODQOS_ASSIGN(const auto bundle, sys::Directory::open(directory));
  PODQOS_ASSIGN(const auto file, bundle.open_file("config.json", O_RDONLY));
  const std::string name = cat(directory, "/config.json");
  struct stat found = {};
  if (::fstat(file.get(), &found) != 0) return fail_errno(errno, cat("stat ", name));
  PODQOS_ASSIGN(const auto text, sys::read_all(file.get(), codec::kMaxConfigSize, name));
  auto changed = annotate_config(text, annotations);
  if (!changed) return fail(std::move(changed).error().with_context(name));
  if (*changed == text) return {};
  return sys::replace_file(
      bundle, "config.json", *changed,
      {.uid = found.st_uid, .gid = found.st_gid, .mode = found.st_mode & kPermissions});
}

}  // namespace podqos::ctl
