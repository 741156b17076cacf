// Package node gives pods their cgroups as a kubelet does, with runc's own library: the root of all pods with what is
// allocatable, the tiers with the sums of their pods' requests, and a cgroup for each pod with the pod's limits. What it
// knows of pods is one JSON file, written anew under a lock.
package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/runc/libcontainer/cgroups"
	"github.com/opencontainers/runc/libcontainer/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/system"
	"golang.org/x/sys/unix"
)

const pidsMax = 32768

// Container is one container of a pod, with the process that stands for it: the runtime that makes it, then its own.
type Container struct {
	Name     string    `json:"name"`
	Requests Resources `json:"requests"`
	Limits   Resources `json:"limits"`
	Pid      int       `json:"pid,omitempty"`
	Start    uint64    `json:"start,omitempty"`
}

// Pod is what is known of a pod.
type Pod struct {
	Tier       string                `json:"tier"`           // "", "burstable" or "besteffort"
	Spec       []Container           `json:"spec,omitempty"` // all containers, where that is known
	Containers map[string]*Container `json:"containers"`
}

// Node is the state, locked.
type Node struct {
	Pods map[string]*Pod `json:"pods"`

	root, directory string
}

// With calls a function with the state of the pods below a root cgroup, which is locked until it returns.
func With(root, directory string, do func(*Node) error) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(directory, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	n := &Node{Pods: map[string]*Pod{}, root: root, directory: directory}
	text, err := os.ReadFile(n.file())
	if err == nil {
		err = json.Unmarshal(text, n)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return do(n)
}

func (n *Node) file() string {
	return filepath.Join(n.directory, "state.json")
}

// Save writes the state.
func (n *Node) Save() error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.file()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(n.file()+".new", n.file())
}

// PodPath is the cgroup of a pod.
func (n *Node) PodPath(uid string) string {
	return n.kubepods(n.Pods[uid].Tier, "pod"+uid)
}

func (n *Node) kubepods(parts ...string) string {
	return filepath.Join(append([]string{n.root, "kubepods"}, parts...)...)
}

// open is a cgroup, with what it shall have.
func open(path string, values configs.Resources) (cgroups.Manager, *configs.Resources, error) {
	values.SkipDevices = true
	m, err := manager.New(&configs.Cgroup{Path: path, Resources: &values})
	return m, &values, err
}

func makeCgroup(path string, values configs.Resources) error {
	m, resources, err := open(path, values)
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return err
	}
	return m.Set(resources)
}

func setCgroup(path string, values configs.Resources) error {
	m, resources, err := open(path, values)
	if err != nil {
		return err
	}
	return m.Set(resources)
}

func removeCgroup(path string) error {
	m, _, err := open(path, configs.Resources{})
	if err != nil {
		return err
	}
	return m.Destroy()
}

func shares(milli int64) configs.Resources {
	value := CPUShares(milli)
	return configs.Resources{CpuShares: value, CpuWeight: cgroups.ConvertCPUSharesToCgroupV2Value(value)}
}

// makeTree makes root and tiers for the first pod.
func (n *Node) makeTree() error {
	m, _, err := open(n.kubepods(), configs.Resources{})
	if err != nil || m.Exists() {
		return err
	}
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return err
	}
	all := configs.Resources{Memory: int64(memory.Totalram) * int64(memory.Unit), PidsLimit: pidsMax}
	if err := makeCgroup(n.root, shares(int64(runtime.NumCPU())*1000)); err != nil {
		return err
	}
	if err := makeCgroup(n.kubepods(), all); err != nil {
		return err
	}
	if err := makeCgroup(n.kubepods("burstable"), shares(0)); err != nil {
		return err
	}
	return makeCgroup(n.kubepods("besteffort"), shares(0))
}

func (n *Node) removeTree() error {
	for _, path := range []string{n.kubepods("burstable"), n.kubepods("besteffort"), n.kubepods(), n.root} {
		if err := removeCgroup(path); err != nil {
			return err
		}
	}
	return nil
}

// setTier gives the Burstable tier the sum of its pods' requests.
func (n *Node) setTier() error {
	var sum int64
	for _, pod := range n.Pods {
		if pod.Tier == "burstable" {
			requests, _ := pod.sums()
			sum += requests.CPU
		}
	}
	return setCgroup(n.kubepods("burstable"), shares(sum))
}

// sums of requests and limits; a limit is the pod's if each container has it.
func (p *Pod) sums() (requests, limits Resources) {
	containers := p.Spec
	if containers == nil {
		for _, container := range p.Containers {
			containers = append(containers, *container)
		}
	}
	cpu, memory := true, true
	for _, container := range containers {
		requests.CPU += container.Requests.CPU
		limits.CPU += container.Limits.CPU
		limits.Memory += container.Limits.Memory
		cpu = cpu && container.Limits.CPU != 0
		memory = memory && container.Limits.Memory != 0
	}
	if !cpu {
		limits.CPU = 0
	}
	if !memory {
		limits.Memory = 0
	}
	return requests, limits
}

func (p *Pod) values() configs.Resources {
	requests, limits := p.sums()
	found := shares(requests.CPU)
	if limits.CPU != 0 {
		found.CpuQuota, found.CpuPeriod = CPUQuota(limits.CPU), Period
	}
	found.Memory = limits.Memory
	if cgroups.IsCgroup2UnifiedMode() {
		for _, size := range cgroups.HugePageSizes() {
			found.HugetlbLimit = append(found.HugetlbLimit, &configs.HugepageLimit{Pagesize: size})
		}
	}
	return found
}

// write gives a pod its cgroup with its values, and the tier its sum.
func (n *Node) write(uid string) error {
	if err := n.makeTree(); err != nil {
		return err
	}
	if err := makeCgroup(n.PodPath(uid), n.Pods[uid].values()); err != nil {
		return err
	}
	if n.Pods[uid].Tier != "burstable" {
		return nil
	}
	return n.setTier()
}

// Place admits a container: root, tiers and the pod are there with their values when it returns.
func (n *Node) Place(uid, id string, container Container) error {
	pod, known := n.Pods[uid]
	if !known {
		pod = &Pod{Containers: map[string]*Container{}, Tier: Tier(container)}
		n.Pods[uid] = pod
	}
	pod.Containers[id] = &container
	if pod.Spec == nil {
		if err := n.write(uid); err != nil {
			return err
		}
	}
	return n.Save()
}

// Admit makes a pod whose containers are known.
func (n *Node) Admit(uid string, spec []Container) error {
	n.Pods[uid] = &Pod{Containers: map[string]*Container{}, Tier: Tier(spec...), Spec: spec}
	if err := n.write(uid); err != nil {
		return err
	}
	return n.Save()
}

// Find is a container by its id, and the UID of its pod.
func (n *Node) Find(id string) (string, *Container) {
	for uid, pod := range n.Pods {
		if container, found := pod.Containers[id]; found {
			return uid, container
		}
	}
	return "", nil
}

// Identify notes the process that stands for a container.
func (c *Container) Identify(pid int) error {
	stat, err := system.Stat(pid)
	c.Pid, c.Start = pid, stat.StartTime
	return err
}

// Release forgets a container, and removes its pod with the last one if its containers are not known beforehand.
func (n *Node) Release(id string) error {
	uid, container := n.Find(id)
	if container == nil {
		return nil
	}
	delete(n.Pods[uid].Containers, id)
	if len(n.Pods[uid].Containers) == 0 && n.Pods[uid].Spec == nil {
		return n.Remove(uid)
	}
	return n.Save()
}

// Remove removes a pod, and the tree with the last one.
func (n *Node) Remove(uid string) error {
	pod, found := n.Pods[uid]
	if !found {
		return nil
	}
	if err := removeCgroup(n.PodPath(uid)); err != nil {
		return err
	}
	delete(n.Pods, uid)
	var err error
	if len(n.Pods) == 0 {
		err = n.removeTree()
	} else if pod.Tier == "burstable" {
		err = n.setTier()
	}
	return errors.Join(err, n.Save())
}
