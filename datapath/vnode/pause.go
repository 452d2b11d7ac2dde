package vnode

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// A node's pause process is the first of its process namespace, and holds that,
// its mounts, its host name and its IPC namespace for as long as the node
// lives. It makes them, starts a program in its own place that takes a few
// kilobytes, and reaps nothing: children of a process that ignores
// SIGCHLD are not waited for (wait(2)). It is root of the host, so nobody in the
// node can stop it.
type pause struct {
	Node      string `json:"node"`      // its host name
	Namespace string `json:"namespace"` // file
	Hosts     string `json:"hosts"`     // file
	Run       string `json:"run"`       // directory to hide
	Program   string `json:"program"`   // to show in its place
	Scratch   string `json:"scratch"`   // directory that holds the node's shared memory
	Layers    string `json:"layers"`    // directory that holds what the node writes
	Group     string `json:"group"`     // cgroup.procs file to join
	Given     string `json:"given"`     // file that says what the node is given
	Root      rootFS `json:"root"`

	Owner image.Owner `json:"owner"` // root of the node
}

const (
	pauseCommand = "pause"
	stayCommand  = "stay"
	pauseGroup   = "pause" // inside the node's
	readyPipe    = 3       // the first of exec.Cmd.ExtraFiles
)

// rooms are the namespaces that commands of a node share, by the name that
// /proc has for them (namespaces(7)), in the order to enter them.
var rooms = []struct {
	name string
	flag int
}{
	{"uts", unix.CLONE_NEWUTS}, {"ipc", unix.CLONE_NEWIPC}, {"net", unix.CLONE_NEWNET},
	{"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS},
}

// open returns the namespaces of a node, made if there is no process that holds
// them. The caller closes them.
func (p *Part) open(key string) ([]*os.File, error) {
	lock := p.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	if spaces, err := p.held(key); err == nil {
		return spaces, nil
	}
	// What lived there has lost its first process, or its network.
	if err := p.host.Group(key).Sub(pauseGroup).Remove(); err != nil {
		return nil, err
	}
	if err := p.startPause(key); err != nil {
		return nil, err
	}
	return p.held(key)
}

// held opens the namespaces that the node's pause process holds.
func (p *Part) held(key string) ([]*os.File, error) {
	pid, err := p.paused(key)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, room := range rooms {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, room.name))
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
		if room.name == "net" && !kernel.SameFile(f, p.host.Path(key)) {
			closeAll(files)
			return nil, fmt.Errorf("the first process of %s is in another network", key)
		}
	}
	// The number is the same process's as long as it is in the group.
	if again, err := p.paused(key); err != nil || again != pid {
		closeAll(files)
		return nil, errors.Join(err, errNoPause)
	}
	return files, nil
}

var errNoPause = errors.New("the node has no first process")

// paused is the number of the node's pause process.
func (p *Part) paused(key string) (int, error) {
	pids, err := p.host.Group(key).Sub(pauseGroup).Processes()
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, errNoPause
	}
	return pids[0], nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// startPause starts the pause process and waits until it is one.
func (p *Part) startPause(key string) error {
	id, node, _ := plan.ParseNamespace(key)
	scratch, err := p.scratch(key)
	if err != nil {
		return fmt.Errorf("make the node's /tmp: %w", err)
	}
	root, owner, err := p.rootOf(key)
	if err != nil {
		return err
	}
	layers := filepath.Join(scratch, layersDir)
	given, err := p.setupOf(key)
	if err == nil && given.Keeps() && !given.Machine() {
		layers, err = p.keepLayers(given, owner)
	}
	if err != nil {
		return err
	}
	group := p.host.Group(key).Sub(pauseGroup)
	if err := group.Make(); err != nil {
		return err
	}
	spec, err := json.Marshal(pause{
		Node: node, Namespace: p.host.Path(key), Hosts: p.namesPath(plan.Fabric(id)),
		Run: p.host.Run, Program: p.program, Scratch: scratch, Layers: layers, Group: group.Files()[0], Root: root, Owner: owner,
		Given: p.setupPath(key),
	})
	if err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(kernel.Inner(), InitCommand, pauseCommand)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{searchPath, kernel.SpecVariable + "=" + string(spec)}, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start the node's first process: %w", err)
	}
	late := time.AfterFunc(answerTries*answerTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	go func() { _ = cmd.Wait() }() // as long as the node lives, or this program
	said, err := io.ReadAll(ready)
	if len(said) > 0 {
		return errors.New(string(said))
	}
	return err // a process that was killed left none that held finds
}

// run furnishes the namespaces and becomes sleep(1). What goes wrong is said to
// the pipe, which closes without a word if nothing does.
func (s pause) run() error {
	pipe := os.NewFile(readyPipe, "ready")
	err := s.become(pipe)
	fmt.Fprintf(pipe, "furnish the node: %v", err)
	return err
}

func (s pause) become(pipe *os.File) error {
	unix.CloseOnExec(int(pipe.Fd()))
	runtime.LockOSThread()
	if err := os.WriteFile(s.Group, []byte("0"), 0); err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	// All of the node would go with it. Where an agent may not do this, the
	// kernel still takes what has more memory first: anything does.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	if err := s.furnish(); err != nil {
		return err
	}
	unix.CloseRange(readyPipe+1, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	signal.Ignore(unix.SIGCHLD)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return s.idle()
}

// stay waits for ever as this program.
func (s pause) stay() error {
	self := SelfInside(s.Run)
	if err := isStatic(self); err != nil {
		return err
	}
	if err := unix.Exec(self, []string{self, InitCommand, stayCommand}, []string{oneProcessor + "=1"}); err != nil {
		return fmt.Errorf("stay in the node: %w", err)
	}
	return nil
}

// isStatic refuses a program that the kernel would start by a linker: that would
// be the image's, with the rights of the host's root.
func isStatic(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("this program is linked with libraries of the host: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// openTree opens a file or directory as a mount that any mount namespace can
// take. Who is root of the host in there, too, writes to one that is read only
// in no way.
func openTree(path string, readOnly bool) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil || !readOnly {
		return fd, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("make %s read only: %w", filepath.Base(path), err)
	}
	return fd, nil
}
