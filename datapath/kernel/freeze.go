package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/proc"
)

// freezeTime bounds how long processes may take to stand still. One that waits for
// a disk may take longer: the next attempt finds it.
const freezeTime = 5 * time.Second

// freezer is where version 1 of control groups freezes processes, if they are not
// tracked there anyway; else nothing.
func (c Cgroups) freezer() []string {
	mount := c.V1["freezer"]
	if tracker, err := c.tracker(); err != nil || mount == "" || tracker == c.V2 {
		return nil
	}
	return []string{mount}
}

// freezers lists the group's existing directories there.
func (g Group) freezers() (list []string) {
	for _, mount := range g.cgroups.freezer() {
		dir := filepath.Join(mount, g.path)
		if _, err := os.Stat(dir); err == nil {
			list = append(list, dir)
		}
	}
	return list
}

// Freeze has all processes of a Sub stand still until Thaw: by the freezer of the
// version of control groups that tracks them, or by SIGSTOP on a host that has
// neither. What joins a frozen group afterwards is found by Frozen.
func (g Group) Freeze() error {
	for end := time.Now().Add(freezeTime); ; time.Sleep(2 * time.Millisecond) {
		frozen, err := g.freezeOnce()
		if err != nil || frozen {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("freeze %s: processes of it still run after %s", g.path, freezeTime)
		}
	}
}

// freezeOnce makes one attempt: processes that are just being started may escape it.
func (g Group) freezeOnce() (frozen bool, err error) {
	switch {
	case g.unified():
		err = g.write("cgroup.freeze", "1")
	case len(g.cgroups.freezer()) > 0:
		err = g.freezeV1()
	default:
		err = g.signal(unix.SIGSTOP)
	}
	if err != nil || !g.Exists() {
		return true, err
	}
	return g.Frozen()
}

// freezeV1 puts what the group has into one of the freezer's hierarchy.
func (g Group) freezeV1() error {
	dir := filepath.Join(g.cgroups.freezer()[0], g.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup %s: %w", dir, err)
	}
	pids, err := g.Processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		err := write(filepath.Join(dir, "cgroup.procs"), fmt.Sprint(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return write(filepath.Join(dir, "freezer.state"), "FROZEN")
}

// Frozen says whether all processes of a group stand still. One that has none does.
func (g Group) Frozen() (bool, error) {
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		return err == nil, err
	}
	if g.unified() {
		return g.frozenV2()
	}
	inside, err := g.inFreezers()
	if err != nil {
		return false, err
	}
	for _, pid := range pids {
		one, alive := proc.Living(pid)
		if alive && !inside[pid] && (len(g.cgroups.freezer()) > 0 || !one.Stopped && !stopping(pid)) {
			return false, nil
		}
	}
	return true, nil
}

// stopping says that SIGSTOP waits for a process: it runs no more instruction of its
// own. One that started a child by vfork(2) waits for that in the kernel.
func stopping(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		var pending uint64
		if _, err := fmt.Sscanf(line, "ShdPnd: %x", &pending); err == nil {
			return pending&(1<<(unix.SIGSTOP-1)) != 0
		}
	}
	return false
}

// inFreezers lists the processes that version 1 has frozen, in any group beside this
// one: some move between them.
func (g Group) inFreezers() (map[int]bool, error) {
	around := g
	if g.parent != nil {
		around = *g.parent
	}
	inside := make(map[int]bool)
	for _, dir := range treeOf(around.freezers()) {
		state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
		if err != nil || strings.TrimSpace(string(state)) != "FROZEN" {
			continue
		}
		held, err := processesOf(dir)
		if err != nil {
			return nil, err
		}
		for _, pid := range held {
			inside[pid] = true
		}
	}
	return inside, nil
}

// frozenV2 reads what version 2 says of the group's directories.
func (g Group) frozenV2() (bool, error) {
	for _, dir := range g.dirs() {
		events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !strings.Contains(string(events), "frozen 1") {
			return false, nil
		}
	}
	return true, nil
}

// Thaw lets the processes of a group go on.
func (g Group) Thaw() error {
	if g.unified() {
		return g.write("cgroup.freeze", "0")
	}
	for _, dir := range g.freezers() {
		if err := write(filepath.Join(dir, "freezer.state"), "THAWED"); err != nil {
			return err
		}
	}
	if len(g.cgroups.freezer()) > 0 {
		return nil
	}
	return g.signal(unix.SIGCONT)
}

// letDie thaws processes that have been killed: those that version 1 froze end
// only then.
func (g Group) letDie() {
	for _, dir := range treeOf(g.freezers()) {
		_ = write(filepath.Join(dir, "freezer.state"), "THAWED") // what is left shows when the group is removed
	}
}

// unified says that version 2 tracks the group's processes.
func (g Group) unified() bool {
	tracker, err := g.cgroups.tracker()
	return err == nil && tracker == g.cgroups.V2
}

// write writes to a file of each of the group's directories.
func (g Group) write(file, value string) error {
	for _, dir := range g.dirs() {
		if err := write(filepath.Join(dir, file), value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// signal signals all processes of the group.
func (g Group) signal(s unix.Signal) error {
	pids, err := g.Processes()
	for _, pid := range pids {
		unix.Kill(pid, s) // one that is gone is fine
	}
	return err
}
