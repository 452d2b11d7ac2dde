package vnode

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

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
}

// command is what nsenter(1) runs, and the variables for it: the session's, and
// with settings of the node's the program that applies those.
func (s session) command() (argv, env []string, err error) {
	if s.Dir == "" && len(s.Env) == 0 {
		return s.Argv, os.Environ(), nil
	}
	spec, err := json.Marshal(start{Argv: s.Argv, Dir: s.Dir, Env: s.Env})
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
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return exitNotStarted, err
		}
	}
	path, err := exec.LookPath(s.Argv[0])
	if err != nil {
		return 127, fmt.Errorf("there is no program %s in the node", s.Argv[0])
	}
	return 126, unix.Exec(path, s.Argv, os.Environ())
}

// variables are those of a node's commands that it was given.
func variables(s vnet.Setup) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		list = append(list, name+"="+s.Env[name])
	}
	return list
}
