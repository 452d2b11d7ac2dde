package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
	product "sublet/lab"
	"sublet/lease/api"
	"sublet/vnet"
)

// supervisor kills a lab's server and agents and starts them again as the lab
// had started them, which is what systemd does on a real host.
type supervisor struct {
	*lab
	api *api.Client

	restarting sync.Mutex

	mu        sync.Mutex
	processes map[string]*process // "server", "agent-h1", ...
}

// process is the server or an agent.
type process struct {
	argv, env []string
	namespace string // file of the network namespace it runs in
	pid       int
	ended     chan struct{} // closed when gone; nil: started by the lab, not ours
}

const server = "server"

func agentOf(host string) string { return "agent-" + host }

// newSupervisor makes a lab whose processes can be killed.
func newSupervisor(t *testing.T, substrate string, flags ...string) *supervisor {
	t.Helper()
	return newLab(t, substrate, flags...).supervised()
}

// supervised takes over the processes of a lab.
func (l *lab) supervised() *supervisor {
	t := l.t
	t.Helper()
	s := &supervisor{lab: l, processes: make(map[string]*process)}
	s.api = api.NewClient(filepath.Join(s.run, api.SocketName))
	t.Cleanup(s.api.Close)
	status, err := product.StatusOf(s.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range status.Processes {
		s.processes[p.Name] = s.adopt(p)
	}
	return s
}

// adopt reads how a process was started.
func (s *supervisor) adopt(p product.Process) *process {
	s.t.Helper()
	read := func(file string) []string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID, file))
		if err != nil {
			s.t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	namespace := "/proc/self/ns/net"
	if host, ok := strings.CutPrefix(p.Name, "agent-"); ok {
		namespace = s.hostNamespace(host)
	}
	return &process{argv: read("cmdline"), env: read("environ"), namespace: namespace, pid: p.PID}
}

func (s *supervisor) hostNamespace(host string) string {
	return "/run/netns/" + labName(s.run) + "-" + host
}

// kill ends a process with SIGKILL and waits until it is gone.
func (s *supervisor) kill(name string) {
	p := s.get(name)
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	p.wait()
}

// restart kills a process and starts it again after a rest.
func (s *supervisor) restart(name string, rest time.Duration) {
	s.restarting.Lock() // one at a time: between kill and start there is nothing to kill
	defer s.restarting.Unlock()
	s.kill(name)
	time.Sleep(rest)
	s.start(name)
}

func (s *supervisor) get(name string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[name]
}

// wait returns when the process is gone.
func (p *process) wait() {
	if p.ended != nil {
		<-p.ended
		return
	}
	for {
		if _, ok := proc.Living(p.pid); !ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// start starts a killed process again.
func (s *supervisor) start(name string) {
	s.t.Helper()
	p := s.get(name)
	cmd := s.command(name)
	if err := inNamespace(p.namespace, cmd.Start); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.set(name, cmd.Process.Pid, ended)
}

func (s *supervisor) set(name string, pid int, ended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.processes[name]
	s.processes[name] = &process{argv: old.argv, env: old.env, namespace: old.namespace, pid: pid, ended: ended}
}

// command is how a process is started; extra arguments may follow.
func (s *supervisor) command(name string, more ...string) *exec.Cmd {
	s.t.Helper()
	p := s.get(name)
	cmd := exec.Command(p.argv[0], append(p.argv[1:len(p.argv):len(p.argv)], more...)...)
	cmd.Env, cmd.Dir = p.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.OpenFile(filepath.Join(s.run, "lab", name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { log.Close() })
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// startTrapped starts an agent that was killed again, with a trap around it
// and one worker, so that its calls come in one order.
func (s *supervisor) startTrapped(name string, answers bool) *trap {
	s.t.Helper()
	p := s.get(name)
	tr := startTrapped(s.t, s.command(name, "--workers", "1"), answers, func(c *exec.Cmd) error {
		return inNamespace(p.namespace, c.Start)
	})
	s.set(name, tr.cmd.Process.Pid, tr.ended)
	return tr
}

// inNamespace runs f in a network namespace.
func inNamespace(path string, f func() error) error {
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.In(ns, f)
}

// request reads a request without the command line, for tests that make many.
func (s *supervisor) admit(request vnet.Request) {
	s.t.Helper()
	if _, err := s.api.Admit(s.t.Context(), request, false); err != nil {
		s.t.Fatalf("admit %s: %v", request.Network, err)
	}
}

// patience bounds how long a lab may take to get where it shall be.
const patience = 30 * time.Second

// ready waits until a network runs.
func (s *supervisor) ready(id vnet.LeaseID) {
	s.t.Helper()
	s.waits("ready", func(ctx context.Context) error {
		l, err := s.api.WaitReady(ctx, id)
		if err == nil && l.State != vnet.Running {
			return fmt.Errorf("%s is %s: %s", id, l.State, l.Message)
		}
		return err
	})
}

// gone waits until no host has anything of a network.
func (s *supervisor) gone(id vnet.LeaseID) {
	s.t.Helper()
	s.waits("gone", func(ctx context.Context) error { return s.api.WaitGone(ctx, id) })
}

// waits tries again while the server is away.
func (s *supervisor) waits(what string, wait func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var last error
	for {
		err := wait(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("not %s within %s: %v", what, patience, errors.Join(last, err))
		}
		last = err
		time.Sleep(10 * time.Millisecond)
	}
}

// asPlanned waits until no host would change anything, and says what one would.
func (s *supervisor) asPlanned(hosts ...string) {
	s.t.Helper()
	s.waits("as planned", func(ctx context.Context) error {
		for _, host := range hosts {
			var steps []string
			if err := s.api.Diff(ctx, vnet.HostID(host), &steps); err != nil {
				return err
			}
			if len(steps) > 0 {
				return errors.New(strings.Join(steps, "; "))
			}
		}
		return nil
	})
}

func idOf(r vnet.Request) vnet.LeaseID { return vnet.LeaseID{Tenant: r.Tenant, Network: r.Network} }
