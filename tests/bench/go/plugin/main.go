// The job of podqos-nri as it would be written in Go: an NRI plugin that gives annotated pods their cgroups, places their
// containers there, and takes in all that a runtime has when it connects.
//
//	plugin -socket PATH -root CGROUP -state DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"../node"
)

type plugin struct {
	root, state string
}

func (p *plugin) with(do func(*node.Node) error) error {
	return node.With(p.root, p.state, do)
}

// Synchronize takes in the containers that live, and forgets those that do not.
func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) (
	[]*api.ContainerUpdate, error) {
	return nil, p.with(func(n *node.Node) error {
		uids := map[string]string{}
		alive := map[string]*node.Pod{}
		for _, pod := range pods {
			uids[pod.Id] = pod.Uid
			alive[pod.Uid] = &node.Pod{Tier: "besteffort", Containers: map[string]*node.Container{}}
			if known, found := n.Pods[pod.Uid]; found {
				alive[pod.Uid].Tier, alive[pod.Uid].Spec = known.Tier, known.Spec
			}
		}
		for _, each := range containers {
			pod, found := alive[uids[each.PodSandboxId]]
			if !found {
				continue
			}
			container := &node.Container{Name: each.Name}
			resources := each.GetLinux().GetResources()
			container.Requests.CPU = int64(resources.GetCpu().GetShares().GetValue()) * 1000 / 1024
			container.Limits.CPU = resources.GetCpu().GetQuota().GetValue() * 1000 / node.Period
			container.Limits.Memory = resources.GetMemory().GetLimit().GetValue()
			if container.Identify(int(each.Pid)) == nil {
				pod.Containers[each.Id] = container
			}
		}
		n.Pods = alive
		return n.Save()
	})
}

func (p *plugin) RunPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	spec, err := node.Specified(pod.Annotations)
	if err != nil {
		return err
	}
	return p.with(func(n *node.Node) error { return n.Admit(pod.Uid, spec) })
}

func (p *plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (
	adjust *api.ContainerAdjustment, _ []*api.ContainerUpdate, err error) {
	err = p.with(func(n *node.Node) error {
		known, found := n.Pods[pod.Uid]
		if !found {
			return fmt.Errorf("pod %s is not known", pod.Uid)
		}
		for _, each := range known.Spec {
			if each.Name == container.Name {
				adjust = adjustment(each, filepath.Join(n.PodPath(pod.Uid), container.Id))
				return n.Place(pod.Uid, container.Id, each)
			}
		}
		return fmt.Errorf("pod %s has no container %s", pod.Uid, container.Name)
	})
	return adjust, nil, err
}

func adjustment(container node.Container, cgroup string) *api.ContainerAdjustment {
	adjust := &api.ContainerAdjustment{}
	adjust.SetLinuxCgroupsPath(cgroup)
	adjust.SetLinuxCPUShares(node.CPUShares(container.Requests.CPU))
	if container.Limits.CPU != 0 {
		adjust.SetLinuxCPUQuota(node.CPUQuota(container.Limits.CPU))
		adjust.SetLinuxCPUPeriod(node.Period)
	}
	if container.Limits.Memory != 0 {
		adjust.SetLinuxMemoryLimit(container.Limits.Memory)
	}
	return adjust
}

// StartContainer notes the container's own process.
func (p *plugin) StartContainer(_ context.Context, _ *api.PodSandbox, container *api.Container) error {
	return p.with(func(n *node.Node) error {
		_, known := n.Find(container.Id)
		if known == nil {
			return fmt.Errorf("container %s is not known", container.Id)
		}
		if err := known.Identify(int(container.Pid)); err != nil {
			return err
		}
		return n.Save()
	})
}

func (p *plugin) RemoveContainer(_ context.Context, _ *api.PodSandbox, container *api.Container) error {
	return p.with(func(n *node.Node) error { return n.Release(container.Id) })
}

func (p *plugin) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.with(func(n *node.Node) error { return n.Remove(pod.Uid) })
}

func main() {
	socket := flag.String("socket", api.DefaultSocketPath, "of the runtime")
	p := &plugin{}
	flag.StringVar(&p.root, "root", "/pods", "cgroup of all pods")
	flag.StringVar(&p.state, "state", "/run/pods", "directory")
	flag.Parse()
	s, err := stub.New(p, stub.WithPluginName("go"), stub.WithPluginIdx("10"), stub.WithSocketPath(*socket),
		stub.WithOnClose(func() { os.Exit(0) }))
	if err == nil {
		err = s.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}
