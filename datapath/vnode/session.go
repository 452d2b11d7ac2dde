package vnode

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// session is what the first process of a session needs to know.
type session struct {
	Node      string   `json:"node"`      // its host name
	Namespace string   `json:"namespace"` // file
	Hosts     string   `json:"hosts"`     // file
	Run       string   `json:"run"`       // directory to hide
	Scratch   string   `json:"scratch"`   // directory that holds the shared ones
	Groups    []string `json:"groups"`    // cgroup.procs files to join
	Argv      []string `json:"argv"`
	TTY       bool     `json:"tty"`
}

// SelfInside is where commands in a node find this program, for senders and
// receivers of measurements; run is $SUBLET_RUN.
func SelfInside(run string) string { return run + "/sublet" }

// Command prepares argv to run inside a node, named by its plan key, and to
// be started by the caller, who sets the streams and may add to Env; tty says
// that they are a terminal, which the command shall control. It runs as
// root of the node (the tenant outside), in the node's network, user and
// control group, with process, mount, IPC and host name namespaces of its
// own. It and all its children end with the command, with the process that is
// started here, and with the caller. Its exit code is the command's; 125: the
// session could not be set up, 126 and 127: argv could not be run.
//
// Start it from a goroutine that is not locked to its thread, or else it ends
// with that thread (PR_SET_PDEATHSIG).
func (p *Part) Command(key string, argv []string, tty bool) (*exec.Cmd, error) {
	id, node, ok := plan.ParseNamespace(key)
	if !ok || len(argv) == 0 {
		return nil, fmt.Errorf("run %q in %q: need a node and a command", argv, key)
	}
	owner, err := p.host.Owner(key)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: the node is not here: %w", argv[0], key, err)
	}
	scratch, err := p.scratch(key)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: make its /tmp: %w", argv[0], key, err)
	}
	spec, err := json.Marshal(session{
		Node: node, Namespace: p.host.Path(key), Hosts: p.namesPath(plan.Fabric(id)),
		Run: p.host.Run, Scratch: scratch, Groups: p.host.Group(key).Files(), Argv: argv, TTY: tty,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, InitCommand, sessionCommand)
	cmd.Dir, cmd.Env = "/", append(environment(owner, node), kernel.SpecVariable+"="+string(spec))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd, nil
}

// environment has nothing of the host's in it.
func environment(owner uint32, node string) []string {
	home := "/tmp"
	if owner == 0 {
		home = "/root"
	}
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + home, "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
		"LANG=C.UTF-8", "TERM=dumb", "SUBLET_NODE=" + node,
	}
}

// Names of the hidden subcommands.
const (
	InitCommand    = kernel.InitCommand
	sessionCommand = "session"
)

// Main is the hidden subcommand InitCommand: args follow its name. It returns
// the exit code.
func Main(args []string) int {
	var err error
	switch {
	case len(args) == 1 && args[0] == kernel.LaunchCommand:
		err = kernel.RunLaunch()
	case len(args) == 1 && args[0] == makerCommand:
		err = makeNamespaces()
	case len(args) == 1 && args[0] == sessionCommand:
		var s session
		if err = kernel.ReadSpec(&s); err == nil && len(s.Groups) > 0 {
			err = s.join()
		} else if err == nil {
			var code int
			if code, err = s.run(); err == nil {
				return code
			}
		}
	default:
		err = fmt.Errorf("unknown arguments %q", strings.Join(args, " "))
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "sublet:", err)
	return exitNotStarted
}

// exitNotStarted follows env(1) and others that run a command.
const exitNotStarted = 125
