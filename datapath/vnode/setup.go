package vnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// setupKind is the directory that holds, for each node that is given something,
// what that is, and beside it what its supervisor says of its programs.
const (
	setupKind   = "setup"
	stateSuffix = ".state"
)

func (p *Part) setupPath(key string) string { return filepath.Join(p.host.Dir(setupKind), key) }

func (p *Part) statePath(key string) string { return p.setupPath(key) + stateSuffix }

// give sets up a node, whose programs it starts anew.
func (p *Part) give(s plan.Setup) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	if done, err := p.giveLive(s); done || err != nil {
		return err
	}
	if s.Carried && s.Live == "" {
		p.suspend(s)
	}
	err := p.stopPrograms(s.Key())
	if err == nil {
		err = p.forgetLive(s.Key())
	}
	if err == nil {
		err = p.setSysctls(s)
	}
	if err == nil {
		err = p.changeFiles(s)
	}
	if err == nil {
		err = p.keepSetup(s)
	}
	if err == nil && s.Carried {
		err = p.endAll(s.Key())
	}
	awaited := false
	if err == nil {
		awaited, err = p.setImage(s)
	}
	if err == nil && !awaited {
		err = p.start(s)
	}
	return err
}

// endAll ends a node's first process, with which all others end.
func (p *Part) endAll(key string) error {
	lock := p.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	return p.host.Group(key).Sub(pauseGroup).Remove()
}

// start starts a node's programs. One with files and no programs is made too, so
// that what is wrong with them is told at once.
func (p *Part) start(s plan.Setup) error {
	if s.Carried && s.Live != plan.LiveComes {
		return nil
	}
	s, err := p.whole(s)
	switch {
	case err != nil:
		return err
	case len(programsOf(s.Setup)) > 0:
		return p.startSupervisor(s)
	case len(s.Files) > 0:
		spaces, err := p.open(s.Key())
		closeAll(spaces)
		return err
	}
	return nil
}

// setSysctls sets what is of the node's network.
func (p *Part) setSysctls(s plan.Setup) error {
	return p.setThese(s, s.Settings())
}

// Remade sets what a node's setup states of an interface that has been made anew: the
// kernel gives that the settings of the node's others.
func (p *Part) Remade(key, device string) error {
	s, err := p.setupOf(key)
	if err != nil {
		return err
	}
	return p.setThese(s, slices.DeleteFunc(s.Settings(), func(name string) bool { return vnet.SysctlDevice(name) != device }))
}

// setThese sets some of a node's settings.
func (p *Part) setThese(s plan.Setup, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ns, err := p.host.Open(s.Key())
	if err != nil {
		return err
	}
	defer ns.Close()
	return kernel.In(ns, func() error {
		for _, name := range names {
			path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
			err := os.WriteFile(path, []byte(s.Sysctls[name]), 0)
			switch {
			case errors.Is(err, os.ErrNotExist):
				return fmt.Errorf("sysctls: this kernel has no %s", name)
			case err != nil:
				return fmt.Errorf("sysctls: %s cannot be %q: %w", name, s.Sysctls[name], errors.Unwrap(err))
			}
		}
		return nil
	})
}

// keepSetup writes what a node is given, where commands and the next agent find
// it. The directory is root's: variables may be secret.
func (p *Part) keepSetup(s plan.Setup) error {
	if err := kernel.MkdirAll(p.host.Dir(setupKind), 0o700); err != nil {
		return err
	}
	_ = os.Remove(p.statePath(s.Key())) // of programs that have ended
	if err := p.keepLive(s); err != nil {
		return err
	}
	if !hasLeft(s) && s.Live != "" {
		s = unmoved(s)
	}
	return writeWhole(p.setupPath(s.Key()), s)
}

// writeWhole writes a file that readers find whole, or as it was.
func writeWhole(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(path), ".next-"+filepath.Base(path))
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// setupOf reads what a node was given; nothing if there is no file.
func (p *Part) setupOf(key string) (plan.Setup, error) { return readSetup(p.setupPath(key)) }

func readSetup(path string) (s plan.Setup, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// take ends a node's programs and forgets what it was given.
func (p *Part) take(s plan.Setup) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	if err := p.stopPrograms(s.Key()); err != nil {
		return fmt.Errorf("end the programs of node %s: %w", s.Key(), err)
	}
	if err := p.forget(s.Key()); err != nil {
		return err
	}
	if err := p.dropKept(s.Key()); err != nil {
		return fmt.Errorf("node %s: %w", s.Key(), err)
	}
	p.awaited.Delete(s.Key())
	p.leaveImage(s.Key())
	files := []string{p.statePath(s.Key()), p.setupPath(s.Key())}
	if s.Machine() {
		files = append(files, p.consolePath(s.Key()), p.doorPath(s.Key()), p.livePath(s.Key()))
	}
	for _, path := range files {
		if err := gone(os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}

// stopTime is how long programs have between SIGTERM and SIGKILL.
const stopTime = 2 * time.Second

// stopPrograms ends a node's programs: the supervisor tells them, waits for
// them as long as stopTime, and ends; what is left is killed.
func (p *Part) stopPrograms(key string) error {
	if pid := p.supervisorOf(key); pid != 0 {
		unix.Kill(pid, unix.SIGTERM) // one that has ended is fine
	}
	for end := time.Now().Add(stopTime + time.Second); p.supervisorOf(key) != 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	node := p.host.Group(key)
	names, err := node.Subs()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == initGroup || strings.HasPrefix(name, programGroup) {
			if err := node.Sub(name).Remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeSetups reads what nodes were given. One whose supervisor has ended is
// not there: it is started again.
func (p *Part) observeSetups(host *plan.Host) error {
	keys, err := p.setups()
	if err != nil {
		return err
	}
	kept, err := p.keptKeys()
	if err := errors.Join(err, p.sweepKept()); err != nil {
		return fmt.Errorf("what nodes keep %w: %w", kernel.ErrUnseen, err)
	}
	for _, key := range union(keys, kept) {
		s, err := p.given(key)
		if err != nil || s.Key() != key { // written anew if it is planned
			id, node, _ := plan.ParseNamespace(key)
			host.Add(plan.Setup{Lease: id, Node: node})
			continue
		}
		if s.Lost = p.lost(s); s.Lost != "" {
			s.Run, s.Image, s.Setup.Kind = nil, "", "" // no plan has it so: it is set again, or deleted
		}
		host.Add(s)
	}
	return p.collectImages(keys)
}

// lost says why programs of a node are to be started again; "": they are not.
func (p *Part) lost(s plan.Setup) string {
	switch key := s.Key(); {
	case !p.hasImage(s):
		return "its image is not there whole"
	case p.runs(s) && !p.supervised(key):
		return "what starts them had ended" + shortage(p.host.Group(key))
	}
	return ""
}

// shortage says which limits a node has come to, behind other words; "": none.
func shortage(node kernel.Group) string {
	if node.RefusedProcesses() > 0 {
		return fmt.Sprintf(", and the node had as many processes as it may, %d", node.MostProcesses())
	}
	if m := node.MemoryFiles(); m.Kills() > 0 {
		return ", and " + outOfMemory(m)
	}
	return ""
}

func outOfMemory(m kernel.MemoryFiles) string {
	return fmt.Sprintf("the node was out of memory, of which it may have %s (memory)", vnet.Bytes(m.Most()))
}

// union is what is in one of two lists.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// runs says whether a node has programs, its own or its image's.
func (p *Part) runs(s plan.Setup) bool {
	if s.Carried && s.Live != plan.LiveComes {
		return false
	}
	whole, err := p.whole(s)
	return err == nil && len(programsOf(whole.Setup)) > 0
}

// supervised says whether a node's supervisor is there, and the namespaces that
// it starts programs in are still the node's: a command that came after the pause
// process had ended has made others.
func (p *Part) supervised(key string) bool {
	pid := p.supervisorOf(key)
	if pid == 0 {
		return false
	}
	spaces, err := p.held(key)
	defer closeAll(spaces)
	if err != nil {
		return false
	}
	for i, f := range spaces {
		if !kernel.SameFile(f, fmt.Sprintf("/proc/%d/fd/%d", pid, readyPipe+1+i)) {
			return false
		}
	}
	return true
}

// supervisorOf is the process that holds the lock on what a node was given; 0:
// none does.
func (p *Part) supervisorOf(key string) int {
	f, err := os.Open(p.setupPath(key))
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// setups lists the nodes that were given something.
func (p *Part) setups() ([]string, error) {
	names, err := p.host.Names(setupKind)
	if err != nil {
		return nil, fmt.Errorf("list what nodes were given: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, _, ok := plan.ParseNamespace(name)
		return !ok
	}), nil
}

// Problems are the programs that are not ready: those that failed, which leave
// their lease degraded, and those that are being started.
func (p *Part) Problems() (list report.Errors) {
	keys, err := p.setups()
	if err != nil {
		return nil // Observe says so
	}
	for _, key := range keys {
		s, err := p.given(key)
		if err == nil {
			s, err = p.whole(s)
		}
		_, awaited := p.awaited.Load(key)
		if err != nil || (s.Carried || len(programsOf(s.Setup)) == 0) && !awaited {
			continue
		}
		problem := report.ItemError{Kind: plan.KindSetup, Key: key, Lease: s.Lease}
		if problem.Op, problem.Text = p.problem(s); problem.Text != "" {
			list = append(list, problem)
		}
	}
	list.Sort()
	return list
}

// problem says what is first not ready in a node: failures before what is to come.
func (p *Part) problem(s plan.Setup) (op plan.Op, text string) {
	if _, awaited := p.awaited.Load(s.Key()); awaited {
		return plan.Await, fmt.Sprintf("node %s: image %s is being fetched", s.Node, s.Image)
	}
	var states []programState
	if text, err := os.ReadFile(p.statePath(s.Key())); err == nil {
		_ = json.Unmarshal(text, &states) // none: as before it was written
	}
	programs := programsOf(s.Setup)
	for _, failed := range []bool{true, false} {
		for i, state := range states {
			if i < len(programs) && state.Why != "" && state.Failed == failed {
				op = plan.Await
				if failed {
					op = plan.Carry
				}
				return op, fmt.Sprintf("node %s: %s %s", s.Node, programName(s.Setup, i), state.Why)
			}
		}
	}
	if len(states) == 0 {
		return plan.Await, fmt.Sprintf("node %s: its programs are being started", s.Node)
	}
	return "", ""
}

// programName is what a node's program is called.
func programName(s vnet.Setup, i int) string {
	if s.Machine() {
		return "its machine"
	}
	return fmt.Sprintf("program %d (%s)", i+1, printable(s.Run[i].Cmd[0]))
}

// lookEvery is how often Loop looks for news of programs: at one directory.
const lookEvery = 200 * time.Millisecond

// Loop calls Changed when programs have become ready, or have ended.
func (p *Part) Loop(ctx context.Context, events chan<- struct{}) {
	var was time.Time
	for {
		if info, err := os.Stat(p.host.Dir(setupKind)); err == nil && !info.ModTime().Equal(was) {
			was = info.ModTime()
			p.Changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-p.fetched:
			select {
			case events <- struct{}{}:
			default:
			}
		case <-time.After(lookEvery):
		}
	}
}
