package host

import (
	"context"
	"errors"
	"io"
	"net/http"

	agentapi "sublet/agent/api"
	"sublet/datapath/image"
	"sublet/datapath/vnode"
)

// saver writes what nodes keep.
func saver(nodes *vnode.Part) func(context.Context, string, bool, io.Writer) error {
	return func(ctx context.Context, namespace string, carried bool, w io.Writer) error {
		return refusal(nodes.SaveKept(ctx, namespace, carried, w))
	}
}

// bringer replaces it.
func bringer(nodes *vnode.Part) func(context.Context, string, bool, io.Reader) error {
	return func(ctx context.Context, namespace string, carried bool, r io.Reader) error {
		return refusal(nodes.BringKept(ctx, namespace, carried, r))
	}
}

// sender writes what a machine is that goes to another host while it runs.
func sender(nodes *vnode.Part) func(context.Context, string, io.Writer) error {
	return func(ctx context.Context, namespace string, w io.Writer) error {
		return refusal(nodes.SendLive(ctx, namespace, w))
	}
}

// taker has it become that.
func taker(nodes *vnode.Part) func(context.Context, string, io.Reader) error {
	return func(ctx context.Context, namespace string, r io.Reader) error {
		return refusal(nodes.TakeLive(ctx, namespace, r))
	}
}

// refusal gives errors that are not the host's their status.
func refusal(err error) error {
	for _, one := range []struct {
		is     error
		status int
	}{
		{image.ErrArchive, http.StatusBadRequest}, {image.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{image.ErrNoDisk, http.StatusInsufficientStorage}, {vnode.ErrNotKept, http.StatusConflict}, {vnode.ErrInUse, http.StatusConflict},
	} {
		if errors.Is(err, one.is) {
			return agentapi.Refuse(one.status, err)
		}
	}
	return err
}
