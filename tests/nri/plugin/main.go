// The least that a plugin written in Go does for the same adjustment as podqos's: it puts a container into the cgroup of
// its pod, by the pod's annotation podqos.io/pod or the container's of podqos.io/requests and limits. What it leaves out:
// it makes no cgroup, gives neither pods nor tiers values, remembers nothing, checks nothing, understands no other
// annotation and no other unit than those below, and knows nothing of init containers.
//
//	plugin -socket PATH -index NN -name NAME [-root CGROUP] [-memory BYTES] [-cgroup PATH]
//
// With -memory or -cgroup it asks for that and nothing else.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

const prefix = "podqos.io/"

type plugin struct {
	root   string
	memory int64
	cgroup string
}

// resources of "cpu=100m,memory=64Mi": thousandths of a CPU, and bytes.
type resources struct {
	cpu, memory int64
}

var suffixes = []struct {
	suffix string
	factor float64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"m", 1e-3}}

func quantity(text string, unit float64) int64 {
	for _, each := range suffixes {
		if number, found := strings.CutSuffix(text, each.suffix); found {
			text, unit = number, unit*each.factor
			break
		}
	}
	value, _ := strconv.ParseFloat(text, 64)
	return int64(math.Ceil(value * unit))
}

func parse(text string) (found resources) {
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "cpu":
			found.cpu = quantity(value, 1000)
		case "memory":
			found.memory = quantity(value, 1)
		}
	}
	return found
}

// amounts of the annotation podqos.io/pod.
type amounts struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

func (a amounts) resources() resources {
	return resources{cpu: quantity(a.CPU, 1000), memory: quantity(a.Memory, 1)}
}

type spec struct {
	Containers []struct {
		Name      string `json:"name"`
		Resources struct {
			Requests amounts `json:"requests"`
			Limits   amounts `json:"limits"`
		} `json:"resources"`
	} `json:"containers"`
}

// specified are requests and limits of one container of a pod, and the tier of the pod.
func specified(text, name string) (requests, limits resources, tier string, err error) {
	var pod spec
	if err = json.Unmarshal([]byte(text), &pod); err != nil {
		return
	}
	tier = "/besteffort"
	guaranteed := true
	for _, container := range pod.Containers {
		asked, allowed := container.Resources.Requests.resources(), container.Resources.Limits.resources()
		if asked != (resources{}) || allowed != (resources{}) {
			tier = "/burstable"
		}
		guaranteed = guaranteed && allowed.cpu != 0 && allowed.memory != 0 && (asked == resources{} || asked == allowed)
		if container.Name == name {
			requests, limits = asked, allowed
		}
	}
	if guaranteed {
		tier = ""
	}
	return
}

func (p *plugin) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}

func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (
	*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjust := &api.ContainerAdjustment{}
	if p.memory != 0 {
		adjust.SetLinuxMemoryLimit(p.memory)
		return adjust, nil, nil
	}
	if p.cgroup != "" {
		adjust.SetLinuxCgroupsPath(p.cgroup)
		return adjust, nil, nil
	}
	requests := parse(container.Annotations[prefix+"requests."+container.Name])
	limits := parse(container.Annotations[prefix+"limits."+container.Name])
	tier := "/besteffort"
	text, whole := pod.Annotations[prefix+"pod"]
	switch {
	case whole:
		var err error
		if requests, limits, tier, err = specified(text, container.Name); err != nil {
			return nil, nil, err
		}
	case limits.cpu != 0 && limits.memory != 0 && (requests == resources{} || requests == limits):
		tier, requests = "", limits
	case requests != resources{} || limits != resources{}:
		tier = "/burstable"
	}
	adjust.SetLinuxCgroupsPath(p.root + tier + "/pod" + pod.Uid + "/" + container.Id)
	adjust.SetLinuxCPUShares(max(2, uint64(requests.cpu)*1024/1000))
	if limits.cpu != 0 {
		adjust.SetLinuxCPUQuota(limits.cpu * 100)
		adjust.SetLinuxCPUPeriod(100000)
	}
	if limits.memory != 0 {
		adjust.SetLinuxMemoryLimit(limits.memory)
	}
	return adjust, nil, nil
}

func main() {
	socket := flag.String("socket", api.DefaultSocketPath, "of the runtime")
	index := flag.String("index", "10", "two digits")
	name := flag.String("name", "plugin", "of the plugin")
	root := flag.String("root", "/kubepods", "of the pods' cgroups")
	memory := flag.Int64("memory", 0, "limit to ask for, in bytes")
	cgroup := flag.String("cgroup", "", "to ask for")
	flag.Parse()
	p := &plugin{root: *root, memory: *memory, cgroup: *cgroup}
	s, err := stub.New(p, stub.WithPluginName(*name), stub.WithPluginIdx(*index), stub.WithSocketPath(*socket),
		stub.WithOnClose(func() { os.Exit(0) }))
	if err == nil {
		err = s.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}
