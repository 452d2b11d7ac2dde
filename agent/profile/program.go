package profile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// groupsOf is the control group of all profiles; each process that measures has
// one of its number below.
const groupsOf = "sublet-profile"

// program is the function while it runs.
type program struct {
	name  string
	group kernel.Group
	cmd   *exec.Cmd
	said  tail
	ended chan struct{}
}

// newGroup makes one, and removes those of runs that were killed.
func newGroup() (kernel.Group, error) {
	groups, err := kernel.FindCgroups("/sys/fs/cgroup")
	if err != nil {
		return kernel.Group{}, err
	}
	own := groups.Group(filepath.Join(groupsOf, strconv.Itoa(os.Getpid())))
	if names, err := own.Siblings(); err == nil {
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if _, lives := proc.Living(pid); err == nil && !lives {
				_ = groups.Group(filepath.Join(groupsOf, name)).Remove()
			}
		}
	}
	return own, errors.Join(own.Make(), favour(groups, own))
}

// favour lets the group have what its quota says, whatever else runs here.
func favour(groups kernel.Cgroups, own kernel.Group) error {
	return errors.Join(own.Favour(), groups.Group(groupsOf).Favour())
}

// start starts a program in a namespace, within a quota, on one processor.
func start(argv []string, namespace *os.File, share float64, cpu int) (*program, error) {
	group, err := newGroup()
	if err != nil {
		return nil, errors.Join(err, group.Remove())
	}
	p := &program{name: filepath.Base(argv[0]), group: group, ended: make(chan struct{})}
	if err := p.give(share); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	dir, err := os.Getwd()
	if err == nil {
		p.cmd, err = kernel.Launch{Dir: dir, Groups: group.Files(), Argv: argv, Namespace: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), namespace.Fd())}.Command()
	}
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := onProcessor(cpu, p.cmd.Start); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", argv[0], err), p.remove())
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// onProcessor runs f in a thread on one processor, which what it starts inherits.
func onProcessor(cpu int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread goes with its affinity
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- fmt.Errorf("pin to processor %d: %w", cpu, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// stop kills it with all that it started.
func (p *program) stop() error {
	err := p.remove()
	<-p.ended
	return err
}

func (p *program) remove() error {
	err := p.group.Remove()
	p.group.RemoveParents()
	return err
}

// died says why it ended.
func (p *program) died() error {
	text := "without a word"
	if said := p.said.last(); said != "" {
		text = "and said: " + said
	}
	return fmt.Errorf("%s ended (%s) %s", p.name, p.cmd.ProcessState, text)
}

// tail keeps the end of what a program says.
type tail struct {
	sync.Mutex
	text []byte
}

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// last is the last line.
func (t *tail) last() string {
	t.Lock()
	defer t.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.text), []byte("\n"))
	return strings.ToValidUTF8(string(lines[len(lines)-1]), "?")
}
