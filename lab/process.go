package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// process is one that the lab started. The kernel may give its number to a
// stranger later, but never with the same start.
type process struct {
	Name    string `json:"name"` // server or agent-HOST
	PID     int    `json:"pid"`
	Started string `json:"started"` // clock ticks since boot
	// Namespace under /run/netns that it was started in ("": the machine's own),
	// and its program with the arguments: what Again needs.
	Namespace string   `json:"namespace,omitempty"`
	Command   []string `json:"command,omitempty"`
}

// tokenVariable marks the lab's processes, also one that was started right
// before a crash of Up and is not in the state.
const tokenVariable = "SUBLET_LAB"

// start starts the server in the machine's own namespace and an agent in each
// host's.
func start(spec Spec, l *layout, s *state, substrate string) error {
	err := s.start("", "server", spec.Exe, "serve", "--run", spec.Run, "--data", spec.Data, "--substrate", substrate)
	if err != nil {
		return err
	}
	for _, host := range s.Hosts {
		command := []string{spec.Exe, "agent", "--host", host, "--run", spec.Run, "--cgroup", Cgroup(spec.Run), "--data", agentData(spec.Run), "--uncut", "--calibrate-after", "0"}
		if err := s.start(l.namespace(host), "agent-"+host, append(command, spec.Agent...)...); err != nil {
			return err
		}
	}
	return nil
}

// start starts one process, in a session of its own, in a network namespace
// but otherwise in the machine's: namespaces that an agent mounts stay when it
// dies.
func (s *state) start(namespace, name string, command ...string) error {
	started, err := s.launch(namespace, name, command)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s.Processes = append(s.Processes, started)
	return s.write()
}

func (s *state) launch(namespace, name string, command []string) (process, error) {
	ns, err := namespaceOf(namespace)
	if err != nil {
		return process{}, err
	}
	defer ns.Close()
	log, err := os.OpenFile(s.log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) // an audit log names tenants
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), tokenVariable+"="+s.Token)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := kernel.In(ns, cmd.Start); err != nil {
		return process{}, err
	}
	go func() { _ = cmd.Wait() }() // reaps it if it ends before we do
	started, _ := proc.Living(cmd.Process.Pid)
	return process{Name: name, PID: cmd.Process.Pid, Started: started.Started, Namespace: namespace, Command: command}, nil
}

// namespaceOf opens one of the lab's namespaces; "" is the machine's own.
func namespaceOf(name string) (*os.File, error) {
	if name == "" {
		return kernel.Current()
	}
	return kernel.OpenNamespace(filepath.Join(netnsDir, name))
}

func (s *state) log(name string) string { return filepath.Join(dirOf(s.Run), name+".log") }

// alive says that the process runs and is the one that was started.
func (p process) alive() bool {
	return proc.Process{PID: p.PID, Started: p.Started}.Alive()
}

// await asks ready until it answers nil, as long as all processes live.
func (s *state) await(ctx context.Context, ready func(context.Context) error) error {
	for {
		for _, p := range s.Processes {
			if !p.alive() {
				return fmt.Errorf("%s ended at once: %s", p.Name, s.lastWords(p.Name))
			}
		}
		if ready == nil {
			return nil
		}
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("server and agents are not ready: %w", err), context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastWords is the end of a log.
func (s *state) lastWords(name string) string {
	text, err := os.ReadFile(s.log(name))
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return "it said nothing"
	}
	const most = 500
	return string(text[max(0, len(text)-most):])
}

// running lists the lab's living processes: those in the state, those that carry
// its token, and of some that did.
func (s *state) running(known ...process) []process {
	var list []process
	seen := map[int]bool{}
	for _, p := range slices.Concat(s.Processes, s.marked(), known) {
		if !seen[p.PID] && p.alive() {
			seen[p.PID] = true
			list = append(list, p)
		}
	}
	return list
}

func (s *state) marked() []process {
	mark := []byte(tokenVariable + "=" + s.Token)
	var list []process
	for _, p := range proc.All() {
		if environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID)); err != nil || !hasLine(environment, mark) {
			continue
		}
		list = append(list, process{Name: "process", PID: p.PID, Started: p.Started})
	}
	return list
}

func hasLine(environment, line []byte) bool {
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(variable, line) {
			return true
		}
	}
	return false
}

// patience is how long processes may take to end after SIGTERM.
const patience = 5 * time.Second

// stop ends all of the lab's processes; those of a lab that never came up have
// nothing worth ending in order, and are killed.
func (s *state) stop() error {
	deadline := time.Now()
	if !s.discarded {
		deadline = deadline.Add(patience)
	}
	asked := map[int]process{}
	for ; ; time.Sleep(5 * time.Millisecond) {
		running := s.running(slices.Collect(maps.Values(asked))...) // one that is ending shows its token no more
		if len(running) == 0 {
			return nil
		}
		late := !time.Now().Before(deadline)
		if time.Now().After(deadline.Add(patience)) {
			return fmt.Errorf("process %d does not die", running[0].PID)
		}
		for _, p := range running {
			switch {
			case late:
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			case asked[p.PID].Started != p.Started:
				asked[p.PID] = p
				_ = syscall.Kill(p.PID, syscall.SIGTERM)
			}
		}
	}
}
