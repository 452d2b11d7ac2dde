package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"sublet/measure/probe"
	"sublet/vnet"
)

// Path is a flow between two nodes of a lease that have one interface each,
// over whatever lies between them, to be loaded by rate. Nodes are named
// NETWORK/NODE, so that paths of several leases are loaded together.
func (r *Lab) Path(l vnet.Lease, from, to string, rate vnet.Rate) (probe.Target, error) {
	targets, err := r.Targets(l)
	if err != nil {
		return probe.Target{}, err
	}
	prefix := string(l.Request.Network) + "/"
	return probe.Target{
		Link: prefix + from + ">" + to, From: prefix + from, To: prefix + to, FromIf: "eth0", ToIf: "eth0",
		FromAddr: l.Addresses[from], ToAddr: l.Addresses[to], MTU: targets[0].MTU, Alloc: rate,
	}, nil
}

// Starters starts probes in nodes named as in Path.
func (r *Lab) Starters(leases ...vnet.Lease) probe.Starter {
	return func(ctx context.Context, name string) (io.ReadWriteCloser, error) {
		network, node, _ := strings.Cut(name, "/")
		for _, l := range leases {
			if string(l.Request.Network) == network {
				return r.Starter(l.ID())(ctx, node)
			}
		}
		return nil, fmt.Errorf("no network %q", network)
	}
}

// InNamespaces starts probes in named network namespaces (ip netns).
func InNamespaces(exe string) probe.Starter {
	return func(ctx context.Context, namespace string) (io.ReadWriteCloser, error) {
		cmd := exec.CommandContext(ctx, "ip", "netns", "exec", namespace, exe, "__probe")
		cmd.Stderr, cmd.WaitDelay = os.Stderr, time.Second
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		return process{out, in, cmd}, cmd.Start()
	}
}

// process is a probe as a child.
type process struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

// Close ends its input, which ends it.
func (p process) Close() error {
	p.WriteCloser.Close()
	return p.cmd.Wait()
}

// Commands runs programs one after another: "ip netns add x" and the like.
func Commands(lines ...string) error {
	for _, line := range lines {
		argv := strings.Fields(line)
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
