package vnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// startCommand becomes a command in the node, with the node's rights: a working
// directory and variables that a tenant chose must not reach a program that is
// still root of the host, such as nsenter(1).
const startCommand = "start"

type start struct {
	Argv []string `json:"argv"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`
	// Powerless takes what rights root of the node has, and makes it User there,
	// unless that is 0.
	Powerless bool `json:"powerless,omitempty"`
	User      int  `json:"user,omitempty"`
	// As is whom of the node's users the command runs as; "": root.
	As string `json:"as,omitempty"`
}

// command is what nsenter(1) runs, and the variables for it: the session's, and
// with settings of the node's, or by a path that may lead nowhere, the program that
// applies those and says so.
func (s session) command() (argv, env []string, err error) {
	if s.Dir == "" && len(s.Env) == 0 && !s.Powerless && s.As == "" && !strings.Contains(s.Argv[0], "/") {
		return s.Argv, os.Environ(), nil
	}
	spec, err := json.Marshal(start{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Powerless: s.Powerless, User: s.User, As: s.As})
	if err != nil {
		return nil, nil, err
	}
	return []string{SelfInside(s.Run), InitCommand, startCommand}, append(os.Environ(), kernel.SpecVariable+"="+string(spec)), nil
}

// findsItself says that the command is looked for where the node's own
// variables say.
func (s session) findsItself() bool {
	return slices.ContainsFunc(s.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
}

// become runs in the node. Exit codes are env(1)'s.
func (s start) become() (int, error) {
	if s.Dir != "" {
		if err := os.Chdir(s.Dir); err != nil {
			return exitNotStarted, fmt.Errorf("begin in workdir: %w", err)
		}
	}
	var as *user.ExecUser
	if s.As != "" {
		found, err := account(s.As)
		if err == nil {
			err = home(s.As, found)
		}
		if err != nil {
			return exitNotStarted, err
		}
		as = found
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return exitNotStarted, err
		}
	}
	if s.Powerless {
		runtime.LockOSThread() // which becomes the command
		if err := surrender(s.User); err != nil {
			return exitNotStarted, err
		}
	}
	if as != nil {
		runtime.LockOSThread()
		if err := become(as); err != nil {
			return exitNotStarted, fmt.Errorf("become user %s: %w", s.As, err)
		}
	}
	path, err := exec.LookPath(s.Argv[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return 126, fmt.Errorf("program %s of the node may not be executed", s.Argv[0])
	case err != nil:
		return 127, fmt.Errorf("there is no program %s in the node", s.Argv[0])
	}
	err = unix.Exec(path, s.Argv, os.Environ())
	if errors.Is(err, unix.ENOEXEC) { // a script that names no interpreter (execvp(3))
		err = unix.Exec("/bin/sh", append([]string{"sh", path}, s.Argv[1:]...), os.Environ())
	}
	return 126, err
}

// home sets the variables that say who a user is.
func home(as string, u *user.ExecUser) error {
	name, _, _ := strings.Cut(as, ":")
	return errors.Join(os.Setenv("HOME", u.Home), os.Setenv("USER", name), os.Setenv("LOGNAME", name))
}

// surrender gives up all rights of the calling thread, for good: no program gets
// them back (capabilities(7)). What has to do with its memory is not written to disk
// when it fails.
func surrender(user int) error {
	for right := uintptr(0); ; right++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // there is none of that number
		} else if err != nil {
			return fmt.Errorf("give up rights: %w", err)
		}
	}
	if user != 0 {
		if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(user, user, user), unix.Setresuid(user, user, user)); err != nil {
			return fmt.Errorf("become user %d: %w", user, err)
		}
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("give up rights: %w", err)
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// variables are those of a node's commands that it was given.
func variables(s vnet.Setup) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		list = append(list, name+"="+s.Env[name])
	}
	return list
}
