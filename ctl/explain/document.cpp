#include "ctl/explain/document.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/oci_edit.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// JSON that YAML reads as well: it takes some characters beyond ASCII for ends of lines.
std::string ascii_json(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// A string that every YAML version reads as one.
std::string yaml_string(const std::string& text) {
  if (!std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
    return ascii_json(text);
  std::string out = "'";
  for (const char c : text)
    out.append(c == '\'' ? 2 : 1, c);
  return out + '\'';
}

/// The last member of this name, or the element of an array at this index, also if it is null.
const JsonNode* child(const JsonNode& node, std::string_view step) {
  if (node.kind == Kind::kArray) {
    const auto index = static_cast<std::size_t>(parse_int(step).value_or(-1));
    return index < node.children.size() ? &node.children[index] : nullptr;
  }
  const auto found =
      std::ranges::find(node.children.rbegin(), node.children.rend(), step, &JsonNode::key);
  return found == node.children.rend() ? nullptr : &*found;
}

/// Members as they stand between braces, within the objects that are missing on the way.
std::string flow_members(std::string_view path, Json members) {
  for (const std::string& name : parts_of(path, '.') | std::views::reverse)
    members = Json::object({{name, std::move(members)}});
  const std::string text = ascii_json(members);
  return text.substr(1, text.size() - 2);
}

/// Collects the changes that insertions make to a document.
class Inserter {
 public:
  explicit Inserter(const Document& document) : document_(document), text_(document.text) {}

  Status insert(const Insertion& insertion) {
    const JsonNode* object = &document_.tree;
    std::string_view path = insertion.path;
    while (!path.empty()) {
      std::string_view rest = path;
      const JsonNode* const next = child(*object, read_until(rest, '.'));
      if (next == nullptr) break;
      object = next;
      path = rest;
    }
    if (object->is_null()) {
      replace(object->raw, cat("{", flow_members(path, insertion.members), "}"));
      return {};
    }
    if (object->kind != Kind::kObject)
      return fail(ErrorCode::kInvalidArgument,
                  cat(insertion.path, ": expected an object, found ", json_shown(*object)));
    Json missing;
    for (const auto& [key, value] : insertion.members.items()) {
      const auto& text = value.get_ref<const std::string&>();
      const JsonNode* const present = path.empty() ? child(*object, key) : nullptr;
      if (present == nullptr)
        missing[key] = text;
      else if (present->kind != Kind::kString || present->text != text)
        replace(present->raw, document_.is_yaml ? yaml_string(text) : ascii_json(text));
    }
    if (missing.empty()) return {};
    if (!object->raw.starts_with('{')) return add_lines(*object, path, missing);
    add_in_flow(*object, path, missing);
    return {};
  }

  Result<std::string> edited() && {
    std::ranges::stable_sort(splices_, {}, &codec::Splice::begin);
    return codec::apply_splices(text_, splices_);
  }

 private:
  [[nodiscard]] std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.data());
  }
  void replace(std::string_view part, std::string text) {
    const std::size_t begin = offset_of(part);
    splices_.push_back({.begin = begin, .end = begin + part.size(), .text = std::move(text)});
  }

  /// Where the first member begins; merged ones are elsewhere.
  [[nodiscard]] std::size_t first_in(const JsonNode& object, std::size_t otherwise) const {
    const bool own = !object.children.empty() && !object.children.front().raw_key.empty();
    return own ? offset_of(object.children.front().raw_key) : otherwise;
  }

  /// Before the first member, with its indentation, to preserve the layout.
  void add_in_flow(const JsonNode& object, std::string_view path, const Json& members) {
    const std::size_t begin = offset_of(object.raw) + 1;
    const std::size_t end = first_in(object, begin);
    const std::string_view space = text_.substr(begin, end - begin);
    const bool blank = space.find_first_not_of(" \t\r\n") == std::string_view::npos;
    const std::string next = blank && !space.empty() ? cat(",", space) : ", ";
    replace(text_.substr(end, 0),
            cat(flow_members(path, members), object.children.empty() ? "" : next));
  }

  /// In lines before that of the first member. With "- ", a tag or an anchor before it, no line can
  /// be inserted there.
  Status add_lines(const JsonNode& map, std::string_view path, const Json& members) {
    const std::size_t first = first_in(map, offset_of(map.raw));
    const std::size_t begin = text_.substr(0, first).rfind('\n') + 1;  // npos + 1 is 0
    std::string indent{text_.substr(begin, first - begin)};
    if (indent.find_first_not_of(' ') != std::string::npos)
      return fail(ErrorCode::kInvalidArgument, "no line can be inserted");
    std::string lines;
    for (; !path.empty(); indent += "  ")
      lines += cat(indent, read_until(path, '.'), ":\n");
    lines += format_members(members, indent);
    if (const std::size_t end = text_.find('\n'); end > 0 && text_[end - 1] == '\r') {
      for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2)
        lines.insert(at, 1, '\r');
    }
    replace(text_.substr(begin, 0), std::move(lines));
    return {};
  }

  const Document& document_;
  std::string_view text_;
  std::vector<codec::Splice> splices_;
};

/// The value for comparisons: the text of a number or word in brackets, unlike a string's.
// NOLINTNEXTLINE(misc-no-recursion): at most kMaxJsonDepth deep
nlohmann::json value_of(const JsonNode& node) {
  if (node.is_null()) return nullptr;
  if (node.kind == Kind::kString) return node.text;
  auto value = node.kind == Kind::kObject ? nlohmann::json::object() : nlohmann::json::array();
  for (const JsonNode& each : node.children) {
    if (node.kind == Kind::kObject)
      value[std::string{each.key}] = value_of(each);
    else
      value.push_back(value_of(each));
  }
  if (node.kind == Kind::kNumber || node.kind == Kind::kBoolean) value.push_back({{}, node.text});
  return value;
}

/// Checks that an edited text has the members, and all else as before: what an alias or a merge key
/// stands for was changed where it is written.
Status check_edited(const Document& before, std::span<const Insertion> insertions,
                    std::string_view text) {
  nlohmann::json expected = value_of(before.tree);
  for (const Insertion& insertion : insertions) {
    std::string pointer = cat("/", insertion.path);
    std::ranges::replace(pointer, '.', '/');
    expected[nlohmann::json::json_pointer{pointer}].update(insertion.members);
  }
  const auto read = parse_yaml(text);
  if (read && read->size() == 1 && value_of(read->front().tree) == expected) return {};
  return fail(ErrorCode::kInvalidArgument, "the edited document has another value");
}

}  // namespace

std::string path_in(std::string_view path, std::string_view rest) {
  return cat(path, path.empty() || rest.empty() ? "" : ".", rest);
}

const JsonNode* json_at(const JsonNode& root, std::string_view path) {
  const JsonNode* found = &root;
  while (found != nullptr && !path.empty())
    found = child(*found, read_until(path, '.'));
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string json_shown(const JsonNode& value) {
  return value.kind == Kind::kString ? cat("\"", printable(value.text), "\"")
                                     : printable(value.raw);
}

Result<std::string> insert_members(const Document& document,
                                   std::span<const Insertion> insertions) {
  Inserter inserter{document};
  for (const Insertion& insertion : insertions)
    PODQOS_TRY(inserter.insert(insertion));
  PODQOS_ASSIGN(auto text, std::move(inserter).edited());
  if (document.is_yaml) PODQOS_TRY(check_edited(document, insertions, text));
  return text;
}

std::string format_members(const Json& members, std::string_view indent) {
  std::string out;
  for (const auto& [key, value] : members.items())
    out += cat(indent, key, ": ", yaml_string(value.get_ref<const std::string&>()), "\n");
  return out;
}

}  // namespace podqos::ctl
