// A small plugin in Go, which asks for one thing for each container.
//
//	plugin -socket PATH -index NN -name NAME -memory BYTES|-cgroup PATH
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

type plugin struct {
	memory int64
	cgroup string
}

func (p *plugin) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}

func (p *plugin) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (
	*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjust := &api.ContainerAdjustment{}
	if p.memory != 0 {
		adjust.SetLinuxMemoryLimit(p.memory)
	}
	if p.cgroup != "" {
		adjust.SetLinuxCgroupsPath(p.cgroup)
	}
	return adjust, nil, nil
}

func main() {
	socket := flag.String("socket", api.DefaultSocketPath, "of the runtime")
	index := flag.String("index", "10", "two digits")
	name := flag.String("name", "plugin", "of the plugin")
	memory := flag.Int64("memory", 0, "limit to ask for, in bytes")
	cgroup := flag.String("cgroup", "", "to ask for")
	flag.Parse()
	p := &plugin{memory: *memory, cgroup: *cgroup}
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
