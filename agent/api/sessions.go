package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"sublet/agent/capture"
	"sublet/agent/session"
	"sublet/internal/problem"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// root is the user of a node who has all rights there.
const root = "0"

// exec runs a command in a node.
func (h *Host) exec(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(s session.Spec) (session.Program, error) {
		if s.User != "" && !vnet.ValidUser(s.User) {
			return session.Program{}, fmt.Errorf("%q is no user of a node: write a name or a number, such as www-data or 1000:100", s.User)
		}
		program, err := h.Command(r.PathValue("namespace"), s)
		if err == nil && s.TTY {
			program.Env = append(program.Env, "TERM="+s.Term)
		}
		return program, err
	})
}

// attach shows the console of a node, whatever the caller names as its command.
func (h *Host) attach(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(s session.Spec) (session.Program, error) {
		return h.Attach(r.PathValue("namespace"), s)
	})
}

// probe runs the prober in a node, whatever the caller names as its command.
func (h *Host) probe(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(session.Spec) (session.Program, error) {
		return h.Command(r.PathValue("namespace"), session.Spec{Argv: h.Prober, User: root})
	})
}

// copy packs files of a node to standard output, or unpacks them from standard
// input: the caller names the direction and the path.
func (h *Host) copy(w http.ResponseWriter, r *http.Request) {
	session.Serve(w, r, func(s session.Spec) (session.Program, error) {
		if len(s.Argv) != 2 || s.Argv[0] != CopyOut && s.Argv[0] != CopyIn || s.TTY || s.Detach {
			return session.Program{}, fmt.Errorf("copy: name %q or %q and a path", CopyOut, CopyIn)
		}
		return h.Command(r.PathValue("namespace"), session.Spec{Argv: h.Copy(s.Argv[0], s.Argv[1]), User: root})
	})
}

// log streams what commands wrote that were left running in a node; ?follow=true
// what they write from now on, too.
func (h *Host) log(w http.ResponseWriter, r *http.Request) {
	session.ServeStream(w, r, func(ctx context.Context, out io.Writer) error {
		return h.Log(ctx, r.PathValue("namespace"), r.URL.Query().Get("follow") == "true", out)
	})
}

// processes lists what runs in a node.
func (h *Host) processes(w http.ResponseWriter, r *http.Request) {
	list, err := h.Processes(r.PathValue("namespace"))
	answer(w, list, err)
}

// join lets a machine become a node: ?public_key=, or one that is made for it.
func (h *Host) join(w http.ResponseWriter, r *http.Request) {
	joined, err := h.Join(r.PathValue("namespace"), r.URL.Query().Get("public_key"))
	answerOne(w, joined, err)
}

// revoke lets no machine become a node.
func (h *Host) revoke(w http.ResponseWriter, r *http.Request) {
	answerOne(w, struct{}{}, h.Revoke(r.PathValue("namespace")))
}

// alone says whether nobody else asks a switch, which then is to be given back; else it
// answers why not.
func (h *Host) alone(w http.ResponseWriter, of, busy string) bool {
	if h.asked.take(of, 1) {
		return true
	}
	problem.Write(w, http.StatusServiceUnavailable, busy)
	return false
}

// flows lists the entries of an OpenFlow switch, for one who asks at a time: there
// may be very many, so they are handed on as they come.
func (h *Host) flows(w http.ResponseWriter, r *http.Request) {
	of := r.PathValue("namespace")
	if !h.alone(w, of, "the entries of this switch are being listed for another request: ask again") {
		return
	}
	defer h.asked.give(of)
	entries := &list{w: w}
	entries.end(h.Flows(r.Context(), of, func(f report.Flow) error { return entries.add(f) }))
}

// status is what an OpenFlow switch tells of itself, for one who asks at a time.
func (h *Host) status(w http.ResponseWriter, r *http.Request) {
	of := r.PathValue("namespace")
	if !h.alone(w, of, "this switch is being asked for another request: ask again") {
		return
	}
	defer h.asked.give(of)
	s, err := h.Switch(of)
	answerOne(w, s, err)
}

// trace says what would become of a packet at an OpenFlow switch, for one who asks at
// a time.
func (h *Host) trace(w http.ResponseWriter, r *http.Request) {
	of := r.PathValue("namespace")
	port, err := strconv.ParseUint(r.URL.Query().Get("in_port"), 10, 32)
	frame, err2 := hex.DecodeString(r.URL.Query().Get("frame"))
	if err = errors.Join(err, err2); err != nil {
		problem.Write(w, http.StatusBadRequest, err.Error())
		return
	}
	if !h.alone(w, of, "this switch is being asked for another request: ask again") {
		return
	}
	defer h.asked.give(of)
	t, err := h.Trace(of, uint32(port), frame)
	if errors.Is(err, report.ErrNoPort) {
		problem.Write(w, http.StatusNotFound, err.Error())
		return
	}
	answerOne(w, t, err)
}

// capture streams one of this host's port ends of a link: ?end= when both are here.
func (h *Host) capture(w http.ResponseWriter, r *http.Request) {
	port, err := h.portOf(r)
	if err != nil {
		problem.Write(w, http.StatusNotFound, err.Error())
		return
	}
	bounds, err := captureBounds(r.URL.Query())
	if err != nil {
		problem.Write(w, http.StatusBadRequest, err.Error())
		return
	}
	fabric := r.PathValue("fabric")
	if !h.captures.take(fabric, mostCaptures) {
		problem.Write(w, http.StatusServiceUnavailable, fmt.Sprintf("%d captures of this network are running on this host, the most there can be: end one", mostCaptures))
		return
	}
	defer h.captures.give(fabric)
	_, node, _ := plan.ParseNamespace(port.Namespace) // of a plan: it is one
	session.ServeStream(w, r, func(ctx context.Context, out io.Writer) error {
		return capture.Stream(ctx, h.Namespace(port.Namespace), port.Interface, node+"/"+port.Interface, port.Namespace+"/"+port.Interface, bounds, out)
	})
}

// mostCaptures bounds those of one lease at a time: the kernel copies each packet
// for each, and keeps megabytes of them for one that nobody reads.
const mostCaptures = 8

// counted counts what runs, by what it is of.
type counted struct {
	mu sync.Mutex
	of map[string]int
}

// take counts one more; false: there are as many as there may be.
func (c *counted) take(key string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	if c.of[key] >= most {
		return false
	}
	c.of[key]++
	return true
}

func (c *counted) give(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key]--; c.of[key] == 0 {
		delete(c.of, key)
	}
}

// captureBounds reads ?count= (packets), ?for= (a duration, "10s"), ?snap=
// (bytes of each packet) and ?filter= (see capture.ParseFilter); one that is not stated bounds nothing.
func captureBounds(query url.Values) (o capture.Options, err error) {
	if text := query.Get("count"); text != "" {
		if o.MaxPackets, err = strconv.ParseUint(text, 10, 64); err != nil || o.MaxPackets == 0 {
			return o, fmt.Errorf("count: %q: state how many packets", text)
		}
	}
	if text := query.Get("for"); text != "" {
		if o.MaxDuration, err = time.ParseDuration(text); err != nil || o.MaxDuration <= 0 {
			return o, fmt.Errorf("for: %q: state how long, as 10s", text)
		}
	}
	if text := query.Get("snap"); text != "" {
		if o.SnapLen, err = strconv.Atoi(text); err != nil || o.SnapLen <= 0 || o.SnapLen > capture.MaxSnapLen {
			return o, fmt.Errorf("snap: %q: state bytes, at most %d", text, capture.MaxSnapLen)
		}
	}
	if text := query.Get("filter"); text != "" {
		if o.Filter, err = capture.ParseFilter(text); err != nil {
			return o, fmt.Errorf("filter: %w", err)
		}
	}
	return o, nil
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
