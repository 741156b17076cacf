// A container runtime as a plugin sees it: the runtime's own side of NRI (pkg/adaptation), which does what it is told on
// standard input, one JSON object a line, and answers each with one line. Messages of NRI are in the JSON of protobuf.
//
//	{"do": "start", "name": "containerd", "version": "v1.7.24", "socket": PATH, "plugins": DIR, "configs": DIR,
//	 "patience": S}                                          seconds that NRI waits for an answer (0: its own 2)
//	{"do": "tell", "pods": [POD...], "containers": [CONTAINER...]}    what each Synchronize says from now on
//	{"do": "call", "method": "CreateContainer", "pod": POD, "container": CONTAINER, "resources": RESOURCES, "size": N}
//	{"do": "synchronized"}                                            how each Synchronize has ended
//
// "runtime" names one of several runtimes in this process. With "size" the pod gets an annotation that makes the message
// so many bytes long, its header of ttrpc included. The log of NRI goes to standard error.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/log"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type command struct {
	Do         string
	Runtime    string
	Name       string
	Version    string
	Socket     string
	Plugins    string
	Configs    string
	Patience   float64
	Pods       []json.RawMessage
	Containers []json.RawMessage
	Method     string
	Pod        json.RawMessage
	Container  json.RawMessage
	Resources  json.RawMessage
	Size       int
}

type answer struct {
	Error        string            `json:"error,omitempty"`
	Adjust       json.RawMessage   `json:"adjust,omitempty"`
	Updates      []json.RawMessage `json:"updates,omitempty"`
	Sent         []int             `json:"sent,omitempty"` // bytes of each message, with its header
	Nanoseconds  int64             `json:"ns,omitempty"`
	Synchronized []synchronized    `json:"synchronized,omitempty"`
}

type synchronized struct {
	Error       string `json:"error,omitempty"`
	Nanoseconds int64  `json:"ns"`
}

// One runtime: NRI, and what a runtime would know.
type runtime struct {
	nri     *adaptation.Adaptation
	lock    sync.Mutex
	pods    []*api.PodSandbox
	boxes   []*api.Container
	synced  []synchronized
	sizes   []int
	padding int // the size of the next message; 0 as it is
}

var runtimes = map[string]*runtime{}

// journal is NRI's log, which tells what it thinks of plugins.
type journal struct{}

func add(format string, args ...any) { fmt.Fprintln(os.Stderr, "nri:", fmt.Sprintf(format, args...)) }

func (journal) Debugf(_ context.Context, format string, args ...any) { add(format, args...) }
func (journal) Infof(_ context.Context, format string, args ...any)  { add(format, args...) }
func (journal) Warnf(_ context.Context, format string, args ...any)  { add(format, args...) }
func (journal) Errorf(_ context.Context, format string, args ...any) { add(format, args...) }

func (r *runtime) start(c *command) error {
	options := []adaptation.Option{
		adaptation.WithSocketPath(c.Socket),
		adaptation.WithPluginPath(c.Plugins),
		adaptation.WithPluginConfigPath(c.Configs),
		adaptation.WithTTRPCOptions([]ttrpc.ClientOpts{ttrpc.WithUnaryClientInterceptor(r.send)}, nil),
	}
	if c.Patience > 0 {
		adaptation.SetPluginRequestTimeout(time.Duration(c.Patience * float64(time.Second)))
	}
	nri, err := adaptation.New(c.Name, c.Version, r.synchronize, r.update, options...)
	if err != nil {
		return err
	}
	r.nri = nri
	return nri.Start()
}

// synchronize is what NRI calls for a plugin that has registered.
func (r *runtime) synchronize(ctx context.Context, tell adaptation.SyncCB) error {
	r.lock.Lock()
	pods, containers := r.pods, r.boxes
	r.lock.Unlock()
	begin := time.Now()
	_, err := tell(ctx, pods, containers)
	done := synchronized{Nanoseconds: time.Since(begin).Nanoseconds()}
	if err != nil {
		done.Error = err.Error()
	}
	r.lock.Lock()
	r.synced = append(r.synced, done)
	r.lock.Unlock()
	return err
}

// update is for updates that a plugin asks for by itself.
func (r *runtime) update(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	return nil, errors.New("no plugin here has reason to ask for updates")
}

func (r *runtime) tell(c *command) error {
	pods, err := parseAll[api.PodSandbox](c.Pods)
	if err != nil {
		return err
	}
	containers, err := parseAll[api.Container](c.Containers)
	if err != nil {
		return err
	}
	r.lock.Lock()
	r.pods, r.boxes = pods, containers
	r.lock.Unlock()
	return nil
}

func parse(text json.RawMessage, message proto.Message) error {
	if len(text) == 0 {
		return nil
	}
	return protojson.Unmarshal(text, message)
}

func parseAll[M any, P interface {
	*M
	proto.Message
}](texts []json.RawMessage) ([]*M, error) {
	var found []*M
	for _, text := range texts {
		message := P(new(M))
		if err := parse(text, message); err != nil {
			return nil, err
		}
		found = append(found, message)
	}
	return found, nil
}

func format(message proto.Message) json.RawMessage {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}

// call passes one request or event to the plugins.
func (r *runtime) call(c *command) (reply answer, err error) {
	pod, container, resources := &api.PodSandbox{}, &api.Container{}, &api.LinuxResources{}
	for text, message := range map[*json.RawMessage]proto.Message{
		&c.Pod: pod, &c.Container: container, &c.Resources: resources,
	} {
		if err := parse(*text, message); err != nil {
			return reply, err
		}
	}
	r.lock.Lock()
	r.sizes, r.padding = nil, c.Size
	r.lock.Unlock()
	ctx := context.Background()
	begin := time.Now()
	var updates []*api.ContainerUpdate
	switch c.Method {
	case "CreateContainer":
		var response *api.CreateContainerResponse
		response, err = r.nri.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: container})
		if err == nil {
			reply.Adjust, updates = format(response.Adjust), response.Update
		}
	case "UpdateContainer":
		var response *api.UpdateContainerResponse
		response, err = r.nri.UpdateContainer(ctx, &api.UpdateContainerRequest{
			Pod: pod, Container: container, LinuxResources: resources})
		if err == nil {
			updates = response.Update
		}
	case "StopContainer":
		var response *api.StopContainerResponse
		response, err = r.nri.StopContainer(ctx, &api.StopContainerRequest{Pod: pod, Container: container})
		if err == nil {
			updates = response.Update
		}
	default:
		err = r.notify(ctx, c.Method, &api.StateChangeEvent{Pod: pod, Container: container})
	}
	reply.Nanoseconds = time.Since(begin).Nanoseconds()
	for _, update := range updates {
		reply.Updates = append(reply.Updates, format(update))
	}
	r.lock.Lock()
	reply.Sent = r.sizes
	r.lock.Unlock()
	return reply, err
}

// notify passes an event that has no answer.
func (r *runtime) notify(ctx context.Context, method string, event *api.StateChangeEvent) error {
	known := map[string]func(context.Context, *api.StateChangeEvent) error{
		"RunPodSandbox":    r.nri.RunPodSandbox,
		"StopPodSandbox":   r.nri.StopPodSandbox,
		"RemovePodSandbox": r.nri.RemovePodSandbox,
		"StartContainer":   r.nri.StartContainer,
		"RemoveContainer":  r.nri.RemoveContainer,
	}
	relay, ok := known[method]
	if !ok {
		return fmt.Errorf("NRI has no %q", method)
	}
	return relay(ctx, event)
}

func obey(c *command) (answer, error) {
	r, ok := runtimes[c.Runtime]
	if !ok {
		r = &runtime{}
		runtimes[c.Runtime] = r
	}
	switch c.Do {
	case "start":
		return answer{}, r.start(c)
	case "tell":
		return answer{}, r.tell(c)
	case "call":
		return r.call(c)
	case "synchronized":
		r.lock.Lock()
		defer r.lock.Unlock()
		return answer{Synchronized: append([]synchronized(nil), r.synced...)}, nil
	}
	return answer{}, fmt.Errorf("what is %q?", c.Do)
}

func main() {
	log.Set(journal{})
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var c command
		var reply answer
		if err = json.Unmarshal(line, &c); err == nil {
			reply, err = obey(&c)
		}
		if err != nil {
			reply.Error = err.Error()
		}
		if err = out.Encode(reply); err != nil {
			return
		}
	}
}
