#include "common/core/root_plan.h"

#include <algorithm>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/layout.h"
#include "common/core/pod_plan.h"
#include "common/core/tree.h"

namespace podqos::core {

std::vector<std::string> with_parents(std::string_view path) {
  std::vector<std::string> out;
  while (path.size() > 1) {
    out.emplace_back(path);
    path = parent_of(path);
  }
  return out;
}

bool is_root_in_use(const TiersRecord& tiers, std::string_view kubepods) {
  const TreeRecord* tree = tree_at(tiers, kubepods);
  return tree != nullptr && has_pods(tiers, *tree);
}

Plan plan_root(TiersRecord& tiers, const std::string& kubepods,
               std::span<const std::string> missing) {
  TreeRecord* tree = tree_at(tiers, kubepods);
  if (tree == nullptr) tree = &tiers.trees.emplace_back(TreeRecord{.kubepods = kubepods});
  // A transaction interrupted here may have left directories without marks.
  const std::string known = tree->top;
  std::vector<std::string> made;
  for (std::string& path : with_parents(kubepods)) {
    if (path == kubepods || is_at_or_below(path, known) || std::ranges::count(missing, path) > 0)
      made.push_back(std::move(path));
  }
  tree->top = made.back() == kubepods ? "" : made.back();
  Plan plan = plan_tree(kubepods, tree->top);
  // Without support for the attribute, only the state directory names the root.
  for (std::string& path : made) {
    plan.emplace_back(SetAttribute{.path = std::move(path),
                                   .name = kMadeAttribute,
                                   .value = kMade,
                                   .on_refusal = OnRefusal::kIgnoreIfUnsupported});
  }
  return plan;
}

void forget_root(TiersRecord& tiers, std::string_view kubepods) {
  std::erase_if(tiers.trees, [&](const TreeRecord& tree) { return tree.kubepods == kubepods; });
}

}  // namespace podqos::core
