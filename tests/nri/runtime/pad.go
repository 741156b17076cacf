package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
)

const (
	headerSize = 10 // of each message of ttrpc
	padding    = "padding"
)

// A request that tells of a pod.
type podRequest interface {
	proto.Message
	GetPod() *api.PodSandbox
}

// send is called in the place of each request's way to its plugin; it notes its size, and makes it as long as it shall
// be.
func (r *runtime) send(ctx context.Context, req *ttrpc.Request, resp *ttrpc.Response, _ *ttrpc.UnaryClientInfo,
	invoke ttrpc.Invoker) error {
	r.lock.Lock()
	size := r.padding
	r.lock.Unlock()
	if size != 0 {
		if err := pad(req, size); err != nil {
			return err
		}
	}
	r.lock.Lock()
	r.sizes = append(r.sizes, headerSize+proto.Size(req))
	r.lock.Unlock()
	return invoke(ctx, req, resp)
}

func pad(req *ttrpc.Request, size int) error {
	requests := map[string]podRequest{
		"CreateContainer": &api.CreateContainerRequest{},
		"UpdateContainer": &api.UpdateContainerRequest{},
		"StopContainer":   &api.StopContainerRequest{},
		"StateChange":     &api.StateChangeEvent{},
	}
	request, ok := requests[req.Method]
	if !ok {
		return fmt.Errorf("%s tells of no pod", req.Method)
	}
	if err := proto.Unmarshal(req.Payload, request); err != nil {
		return err
	}
	pod := request.GetPod()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	// Each longer text may make the lengths before it longer, too.
	for range 8 {
		payload, err := proto.Marshal(request)
		if err != nil {
			return err
		}
		req.Payload = payload
		missing := size - headerSize - proto.Size(req)
		if missing == 0 {
			return nil
		}
		length := len(pod.Annotations[padding]) + missing
		if length < 0 {
			break
		}
		pod.Annotations[padding] = strings.Repeat("x", length)
	}
	return fmt.Errorf("%s cannot be %d bytes long", req.Method, size)
}
