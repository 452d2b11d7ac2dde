// Package harness is what the measurements in bench share: a lab of a substrate,
// leases on it, probes in their nodes, samples, and tables in Markdown.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sublet/agent/session"
	"sublet/lab/testbed"
	"sublet/lease/api"
	"sublet/measure/probe"
	"sublet/plan"
	"sublet/vnet"
	"sublet/vnet/file"
	"sublet/vnet/topology"
)

// Lab is a lab that is up.
type Lab struct{ *testbed.Testbed }

// Build makes the program, or takes $SUBLET_BIN; call clean afterwards.
func Build() (exe string, clean func(), err error) {
	if exe = os.Getenv("SUBLET_BIN"); exe != "" {
		return exe, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "sublet-bench")
	if err != nil {
		return "", nil, err
	}
	clean = func() { os.RemoveAll(dir) }
	exe = filepath.Join(dir, "sublet")
	build := exec.Command("go", "build", "-o", exe, "sublet/cmd/sublet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		clean()
		return "", nil, fmt.Errorf("build sublet: %w\n%s", err, out)
	}
	return exe, clean, nil
}

// Start makes a lab of a substrate written in YAML, or of a name (topology.Named).
func Start(ctx context.Context, exe, substrate string) (*Lab, error) {
	return start(ctx, exe, substrate, false)
}

// StartBare is Start with wires that are plain pairs of devices (lab.Spec).
func StartBare(ctx context.Context, exe, substrate string) (*Lab, error) {
	return start(ctx, exe, substrate, true)
}

func start(ctx context.Context, exe, substrate string, bare bool) (*Lab, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a lab makes network namespaces: run this as root")
	}
	sub, named, err := topology.Named(substrate)
	if !named {
		sub, err = file.ParseSubstrate("substrate", []byte(substrate))
	}
	if err != nil {
		return nil, err
	}
	g, err := testbed.Start(ctx, exe, sub, bare)
	return &Lab{g}, err
}

// Down releases leases and waits until nothing of them is left.
func (r *Lab) Down(ctx context.Context, leases ...vnet.Lease) error {
	var failed error
	for _, l := range leases {
		if _, err := r.Client.Release(ctx, l.ID()); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		failed = errors.Join(failed, r.Client.WaitGone(ctx, l.ID()))
	}
	return failed
}

// Lease reads a lease again, with the rates allocated now.
func (r *Lab) Lease(ctx context.Context, l vnet.Lease) (vnet.Lease, error) {
	return r.Client.Lease(ctx, l.ID())
}

// Starter starts probes in a lease's nodes.
func (r *Lab) Starter(id vnet.LeaseID) probe.Starter {
	return func(ctx context.Context, node string) (io.ReadWriteCloser, error) {
		conn, err := r.Client.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return session.OpenPipe(ctx, conn, api.NodePath(id, node, "probe"), session.Spec{Argv: []string{"probe"}})
	}
}

// Targets are both directions of all links of a lease.
func (r *Lab) Targets(l vnet.Lease) ([]probe.Target, error) {
	ports, err := plan.Ports(r.Substrate, l)
	if err != nil {
		return nil, err
	}
	mtu := 0
	for _, p := range ports {
		mtu = p[0].MTU // the same on all links of a network
	}
	return probe.Targets(l, mtu, func(link vnet.VirtualLink, end int) string { return ports[link.Name][end].Interface }), nil
}

// Check measures a lease's promises, as `sublet check` does.
func (r *Lab) Check(ctx context.Context, l vnet.Lease, opt probe.Options) (vnet.Verdict, error) {
	var err error
	if opt.Targets, err = r.Targets(l); err != nil {
		return vnet.Verdict{}, err
	}
	return probe.Check(ctx, l, r.Starter(l.ID()), opt)
}

// Saturate loads all links of a lease until stop is called: what others do
// while one is measured. The load is a part of the allocated rate, or of rate
// where nothing is allocated.
func (r *Lab) Saturate(ctx context.Context, l vnet.Lease, load probe.Load, rate vnet.Rate) (stop func(), err error) {
	targets, err := r.Targets(l)
	if err != nil {
		return nil, err
	}
	for i := range targets {
		if targets[i].Alloc == 0 {
			targets[i].Alloc = rate
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := probe.Run(ctx, r.Starter(l.ID()), probe.Options{Targets: targets, Duration: time.Hour}, load)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "load on %s: %v\n", l.ID(), err)
		}
	}()
	return func() { cancel(); <-done }, nil
}
