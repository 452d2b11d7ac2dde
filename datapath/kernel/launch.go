package kernel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// InitCommand is the hidden subcommand by which this program starts itself, or
// Inner, in places that it cannot enter afterwards.
const InitCommand = "__init"

// LaunchCommand follows InitCommand for a Launch.
const LaunchCommand = "launch"

// Launch starts a program inside control groups from its first instruction,
// in a session of its own. Without a jail it keeps the caller's mounts, and sees
// namespaces that are bound later.
type Launch struct {
	Dir    string   `json:"dir"`            // to start in; "", and with a jail: /
	Groups []string `json:"groups"`         // Group.Files
	Jail   *Jail    `json:"jail,omitempty"` // its root directory
	Argv   []string `json:"argv"`           // with an absolute path
	// Namespace is the file of the network namespace to start in; "": the caller's.
	Namespace string `json:"namespace,omitempty"`
}

// Command prepares the launch; the caller starts it and waits for it.
func (l Launch) Command() (*exec.Cmd, error) {
	spec, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(l.launcher(), InitCommand, LaunchCommand)
	cmd.Dir, cmd.Env = cmp.Or(l.Dir, "/"), []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", SpecVariable + "=" + string(spec)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if l.Jail != nil {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	}
	return cmd, nil
}

// launcher is what becomes the program. This program finds itself by a name that
// means whoever uses it.
func (l Launch) launcher() string {
	if len(l.Argv) > 0 && l.Argv[0] == Self {
		return Self
	}
	return Inner()
}

// SpecVariable is the environment variable that tells InitCommand what to do.
// Arguments would show to every user of the machine, with the names of
// tenants, networks and nodes.
const SpecVariable = "SUBLET_INIT"

// ReadSpec reads SpecVariable into spec and takes it out of the environment.
func ReadSpec(spec any) error {
	text := os.Getenv(SpecVariable)
	if err := os.Unsetenv(SpecVariable); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), spec)
}

// RunLaunch is the hidden subcommand's work: it becomes the program.
func RunLaunch() error {
	var l Launch
	if err := ReadSpec(&l); err != nil {
		return err
	}
	for _, file := range l.Groups {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	if err := l.mount(); err != nil {
		return err
	}
	if err := l.enter(); err != nil {
		return err
	}
	if err := unix.Exec(l.Argv[0], l.Argv, os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", l.Argv[0], err)
	}
	return nil
}

// enter moves the calling thread, which becomes the program.
func (l Launch) enter() error {
	if l.Namespace == "" {
		return nil
	}
	runtime.LockOSThread()
	ns, err := OpenNamespace(l.Namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	return enter(ns)
}

func (l Launch) mount() error {
	if l.Jail == nil {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return l.Jail.enter()
}
