package probe

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/vishvananda/netns"
)

// start is the Starter: this binary as a probe inside a node.
func (l *lab) start(_ context.Context, node string) (io.ReadWriteCloser, error) {
	return l.spawn(node, nil, func(start func() error) error { return l.in(node, start) })
}

// startOwned starts a probe in a new node whose network namespace belongs to
// a new user namespace: root inside, nobody outside.
func (l *lab) startOwned(node string) io.ReadWriteCloser {
	l.t.Helper()
	nobody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
	pipe, err := l.spawn(node, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: nobody, GidMappings: nobody,
		Credential: &syscall.Credential{NoSetGroups: true},
	}, func(start func() error) error { return start() })
	must(l.t, err)
	l.t.Cleanup(func() { pipe.Close() })
	ns, err := netns.GetFromPid(l.probes[node].Process.Pid)
	must(l.t, err)
	l.t.Cleanup(func() { ns.Close() })
	l.nodes[node] = ns
	return pipe
}

// spawn starts this binary as a probe, within.
func (l *lab) spawn(node string, attr *syscall.SysProcAttr, within func(start func() error) error) (io.ReadWriteCloser, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = append(os.Environ(), probeEnv+"=1"), os.Stderr, attr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := within(cmd.Start); err != nil {
		return nil, err
	}
	if l.group != "" {
		must(l.t, os.WriteFile(l.group+"/cgroup.procs", fmt.Append(nil, cmd.Process.Pid), 0o644))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probes[node] = cmd
	return &process{Writer: in, Reader: out, in: in, cmd: cmd}, nil
}

// process is a started probe.
type process struct {
	io.Writer
	io.Reader
	in   io.Closer
	cmd  *exec.Cmd
	once sync.Once
}

func (p *process) Close() error {
	p.once.Do(func() {
		p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return nil
}
