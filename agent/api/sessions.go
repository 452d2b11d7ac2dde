package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"

	"sublet/agent/capture"
	"sublet/agent/session"
	"sublet/plan"
)

// exec runs a command in a node.
func (h *Host) exec(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(s session.Spec) (*exec.Cmd, error) {
		cmd, err := h.Command(r.PathValue("namespace"), s.Argv, s.TTY)
		if err == nil && s.TTY {
			cmd.Env = append(cmd.Env, "TERM="+s.Term)
		}
		return cmd, err
	})
}

// probe runs the prober in a node, whatever the caller names as its command.
func (h *Host) probe(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(session.Spec) (*exec.Cmd, error) {
		return h.Command(r.PathValue("namespace"), h.Prober, false)
	})
}

// capture streams one of this host's port ends of a link: ?end= when both are here.
func (h *Host) capture(w http.ResponseWriter, r *http.Request) {
	port, err := h.portOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	session.ServeStream(w, r, func(ctx context.Context, out io.Writer) error {
		return capture.Stream(ctx, h.Namespace(port.Namespace), port.Interface, port.Namespace+"/"+port.Interface, capture.Options{}, out)
	})
}

// portOf finds the link end that a request names.
func (h *Host) portOf(r *http.Request) (*plan.Port, error) {
	index, err := strconv.Atoi(r.PathValue("index"))
	if err != nil {
		return nil, errors.New("no such link")
	}
	want, err := h.Plan(r.Context())
	if err != nil {
		return nil, err
	}
	side := 0
	if r.URL.Query().Get("end") == "1" {
		side = 1
	}
	if port := portIn(want, r.PathValue("fabric"), index, side); port != nil {
		return port, nil
	}
	return nil, errors.New("no such link end here")
}

// portIn is the end of a link in its node: the one place by which all its frames
// pass, since those out of a tunnel reach the node without the fabric's device.
// nil: that end is on another host.
func portIn(want plan.Host, fabric string, index, side int) *plan.Port {
	for _, l := range plan.Of[plan.VxLink](want) {
		if plan.Fabric(l.Lease) == fabric && l.Index == index && l.Ends[side].Port != nil {
			return l.Ends[side].Port
		}
	}
	return nil
}
