// The least that a plugin written in Go does for the same adjustment as podqos's: it puts a container into the cgroup of
// its pod, by the container's annotations of podqos.io/requests and limits. What it leaves out: it makes no cgroup, gives
// neither pods nor tiers values, remembers nothing, checks nothing, and understands no other annotation.
//
//	plugin -socket PATH -index NN -name NAME [-root CGROUP] [-memory BYTES] [-cgroup PATH]
//
// With -memory or -cgroup it asks for that and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
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

func quantity(text string, unit int64) int64 {
	for suffix, factor := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if number, found := strings.CutSuffix(text, suffix); found {
			value, _ := strconv.ParseInt(number, 10, 64)
			return value * factor * unit
		}
	}
	if number, found := strings.CutSuffix(text, "m"); found {
		value, _ := strconv.ParseInt(number, 10, 64)
		return value * unit / 1000
	}
	value, _ := strconv.ParseInt(text, 10, 64)
	return value * unit
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
	switch {
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
