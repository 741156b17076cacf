#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "ctl/node/finding.h"
#include "ctl/node/records.h"

namespace podqos::ctl {

constexpr const char* kReconcile = "podqosctl reconcile";

/// A kind of the findings about a node.
struct NodeCheck {
  std::string_view name;
  std::string_view group;
  std::string_view good;  ///< said by doctor where nothing is found; "": who owns each kubepods
  Outcome outcome;
  const char* remedy;  ///< "" if the text says it
};
/// All kinds, in the order of doctor.
inline constexpr std::array kNodeChecks = {
    NodeCheck{"records", "state", "all records can be read", Outcome::kProblem, ""},
    NodeCheck{"roots", "pods", "", Outcome::kProblem, ""},
    NodeCheck{"controllers", "pods", "all trees have their controllers", Outcome::kProblem,
              kReconcile},
    NodeCheck{"values", "pods", "the kernel has what the rules say", Outcome::kProblem, kReconcile},
    NodeCheck{"places", "pods", "all containers are in their pods", Outcome::kProblem, ""},
    NodeCheck{"containers", "pods", "all recorded containers run, or are yet to be deleted",
              Outcome::kWarning, kReconcile},
    NodeCheck{"unmanaged", "pods", "each pod cgroup has a record", Outcome::kProblem, kReconcile},
    NodeCheck{"limits", "pods", "pods follow the limits of their containers", Outcome::kWarning,
              ""},
    NodeCheck{"requests", "pods", "the node has room for all requests", Outcome::kWarning, ""},
    NodeCheck{"missed", "pods", "no container that asks for podqos is missed", Outcome::kWarning,
              ""},
};
/// A finding of one of these kinds.
/// @param subject  uid of the pod that it is about; "": of none
[[nodiscard]] Finding finding_of(std::string_view name, std::string text,
                                 std::string_view subject = {});

// What read_node() finds beside the values of pods and tiers: sentences with their remedies.

/// Of pod cgroups in the tier that are not among the `known` ones, which have records.
[[nodiscard]] std::vector<std::string> unmanaged_pods(
    const std::string& tier, const std::set<std::string, std::less<>>& known,
    cgroup::Machine& cgroups);

/// Of controllers that the kernel has and the tree's children lack.
[[nodiscard]] std::vector<std::string> lacking_controllers(const core::TreeRecord& tree,
                                                           cgroup::Machine& cgroups);

/// Of a root that podqos cannot use, or has no records of. One with a kubelet's pods belongs to
/// the kubelet.
[[nodiscard]] std::vector<std::string> unusable_roots(const core::Settings& settings,
                                                      const NodeRecords& records,
                                                      cgroup::Machine& cgroups);

}  // namespace podqos::ctl
