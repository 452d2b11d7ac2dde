package kernel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// InitCommand is the hidden subcommand by which this program starts itself in
// places that it cannot enter afterwards.
const InitCommand = "__init"

// LaunchCommand follows InitCommand for a Launch.
const LaunchCommand = "launch"

// Launch starts a program inside control groups from its first instruction,
// with some files replaced, in a session of its own. Without any it keeps the
// caller's mounts, and sees namespaces that are bound later.
type Launch struct {
	Dir    string            `json:"dir"`    // to start in; "": /
	Groups []string          `json:"groups"` // Group.Files
	Binds  map[string]string `json:"binds"`  // file to show, by the path to show it at
	Argv   []string          `json:"argv"`   // with an absolute path
}

// Command prepares the launch; the caller starts it and waits for it.
func (l Launch) Command() (*exec.Cmd, error) {
	spec, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", InitCommand, LaunchCommand)
	cmd.Dir, cmd.Env = cmp.Or(l.Dir, "/"), []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", SpecVariable + "=" + string(spec)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if len(l.Binds) > 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	}
	return cmd, nil
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
	if err := unix.Exec(l.Argv[0], l.Argv, os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", l.Argv[0], err)
	}
	return nil
}

func (l Launch) mount() error {
	if len(l.Binds) == 0 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for target, source := range l.Binds {
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", source, target, err)
		}
	}
	return nil
}
