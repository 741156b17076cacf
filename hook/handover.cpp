#include "hook/handover.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/store/state_copy.h"
#include "hook/edit_check.h"

namespace podqos::hook {

namespace {

constexpr std::uint32_t kMagic = 0x71736f70;  // "posq"
/// More than podqos ever plans for one config.json.
constexpr std::size_t kMaxSplices = 64;

/// The payload behind the magic number; values are part of the format.
enum class Kind : std::uint8_t { kNothing = 0, kPlacement = 1, kError = 2 };

/// Serializes numbers as 8 bytes in host byte order: both ends are the same program.
class Writer {
 public:
  void number(std::uint64_t value) {
    std::array<char, sizeof value> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    out_.append(bytes.data(), bytes.size());
  }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  [[nodiscard]] std::string release() && { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what a Writer wrote. After a read beyond the end all reads return 0 or "", and sound() is
/// false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) {
      sound_ = false;
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > bytes_.size()) {
      sound_ = false;
      return {};
    }
    std::string value{bytes_.substr(0, size)};
    bytes_.remove_prefix(size);
    return value;
  }
  [[nodiscard]] bool sound() const { return sound_; }
  [[nodiscard]] bool at_end() const { return sound_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool sound_ = true;
};

/// The error for bytes that are not a handover.
std::unexpected<Error> broken() {
  return fail(ErrorCode::kCorrupt, "the parser process sent an invalid reply");
}

/// Checks that a cgroupsPath lies below one of podqos's roots and has plain components.
Status check_path(std::string_view cgroups_path, const std::vector<std::string>& roots) {
  // The systemd driver writes "slice:prefix:name".
  const auto unit = core::parse_systemd_cgroups_path(cgroups_path);
  const std::string path = unit ? core::scope_path(*unit).value_or("") : std::string{cgroups_path};
  const bool beneath = std::ranges::any_of(
      roots, [&](const std::string& root) { return path.starts_with(cat(root, "/")); });
  bool plain = true;
  for (std::size_t begin = 1; begin <= path.size() && plain;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    plain = core::check_cgroup_component(path.substr(begin, end - begin)).has_value();
    begin = end + 1;
  }
  if (beneath && plain) return {};
  return fail(ErrorCode::kConflict,
              cat("the parser process requested cgroupsPath \"", printable(cgroups_path),
                  "\", expected a path below ", roots.front()));
}

}  // namespace

std::string format_handover(const Handover& handover) {
  Writer out;
  out.number(kMagic);
  if (!handover) {
    out.number(static_cast<std::uint64_t>(Kind::kError));
    out.number(static_cast<std::uint64_t>(handover.error().code));
    out.text(handover.error().message);
  } else if (!*handover) {
    out.number(static_cast<std::uint64_t>(Kind::kNothing));
  } else {
    out.number(static_cast<std::uint64_t>(Kind::kPlacement));
    out.text((*handover)->cgroups_path);
    out.number((*handover)->splices.size());
    for (const codec::Splice& splice : (*handover)->splices) {
      out.number(splice.begin);
      out.number(splice.end);
      out.text(splice.text);
    }
  }
  return std::move(out).release();
}

Result<Handover> parse_handover(std::string_view bytes) {
  if (bytes.size() > kMaxHandover) return broken();
  Reader in{bytes};
  if (in.number() != kMagic) return broken();
  const std::uint64_t kind = in.number();
  if (kind == static_cast<std::uint64_t>(Kind::kNothing)) {
    if (!in.at_end()) return broken();
    return Handover{std::nullopt};
  }
  if (kind == static_cast<std::uint64_t>(Kind::kError)) {
    const std::uint64_t code = in.number();
    std::string message = in.text();
    // The message is untrusted: keep it on one line.
    std::ranges::replace_if(
        message, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    if (!in.at_end() || code > static_cast<std::uint64_t>(ErrorCode::kIo)) return broken();
    return Handover{fail(static_cast<ErrorCode>(code), std::move(message))};
  }
  if (kind != static_cast<std::uint64_t>(Kind::kPlacement)) return broken();
  app::ConfigChange placement{.cgroups_path = in.text(), .splices = {}};
  const std::uint64_t count = in.number();
  if (count > kMaxSplices) return broken();
  for (std::uint64_t i = 0; i < count && in.sound(); ++i) {
    const std::uint64_t begin = in.number();
    const std::uint64_t end = in.number();
    placement.splices.push_back({.begin = begin, .end = end, .text = in.text()});
  }
  if (!in.at_end()) return broken();
  return Handover{std::move(placement)};
}

std::vector<std::string> allowed_roots(const core::Settings& settings) {
  std::vector<std::string> roots = core::possible_roots(settings.cgroup_root);
  // An unreadable state is reported by the parser process, which needs it.
  const auto state = store::read_state(settings.state_dir);
  if (state && *state) {
    for (const core::TreeRecord& tree : (*state)->tiers.trees)
      roots.push_back(tree.kubepods);
  }
  return roots;
}

Status check_placement(const app::ConfigChange& placement, const EditPlaces& places,
                       const std::vector<std::string>& roots,
                       const codec::HookRegistration& hooks) {
  if (auto sound = check_splices(placement.splices, places, placement.cgroups_path, hooks); !sound)
    return sound;
  const std::string quoted = codec::quote_json(placement.cgroups_path);
  const bool moves = std::ranges::any_of(placement.splices, [&](const codec::Splice& splice) {
    return splice.text.find(quoted) != std::string::npos;
  });
  return moves ? check_path(placement.cgroups_path, roots) : Status{};
}

}  // namespace podqos::hook
