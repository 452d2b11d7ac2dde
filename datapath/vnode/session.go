package vnode

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/internal/filecopy"
	"sublet/plan"
)

// session is what the first process of a session needs to know.
type session struct {
	Node    string            `json:"node"`          // its name
	Rooms   []string          `json:"rooms"`         // files of the namespaces to enter, as rooms lists them
	Hosts   string            `json:"hosts"`         // file
	FRR     map[string]string `json:"frr,omitempty"` // directories to show, if they exist, by the path to show them at
	Run     string            `json:"run"`           // directory that is hidden
	Program string            `json:"program"`       // that is shown in its place
	Groups  []string          `json:"groups"`        // cgroup.procs files to join
	Group   string            `json:"group"`         // the one of them that is the session's own
	Argv    []string          `json:"argv"`
	TTY     bool              `json:"tty,omitempty"`
	Log     string            `json:"log,omitempty"`   // file for the output of a command that is left running
	Env     []string          `json:"env,omitempty"`   // beside the usual ones
	Order   string            `json:"order,omitempty"` // oom_score_adj of this process; "": killAsOthers
	Dir     string            `json:"dir,omitempty"`   // where the command begins; "": /
	// Powerless, User and As are as in start.
	Powerless bool   `json:"powerless,omitempty"`
	User      int    `json:"user,omitempty"`
	As        string `json:"as,omitempty"` // a user of the node

	Memory  kernel.MemoryFiles `json:"memory"` // of the node
	answers **rings            // for what the session started; nil: this process outlives it
}

// SelfInside is where commands in a node find this program, for senders and
// receivers of measurements; run is $SUBLET_RUN.
func SelfInside(run string) string { return run + "/sublet" }

// A Command is a program to be run in a node. The caller sets the streams, may
// add to Env, starts it, waits for it and calls Done, also if it was never
// started. Its exit code is the program's; 125: the session could not be set up,
// 126 and 127: the program could not be run.
type Command struct {
	*exec.Cmd
	part   *Part
	node   kernel.Group
	name   string // of the session's own group
	spaces []*os.File
}

// Options of a command.
type Options struct {
	TTY    bool // its streams are a terminal, which it shall control
	Detach bool // it is left running: the Command ends when it was started, and writes its number in the node
	// User is whom of the node's users it runs as; "": the one that the node was
	// given.
	User string
	Term string // at a console: the client's TERM
}

// Command prepares argv to run inside a node, named by its plan key. It runs as
// a user of the node (its root is the tenant outside), in the node's network, user namespace
// and control group, and shares process, mount, IPC and host name namespaces
// with all that runs there. What it leaves running lives as long as the node.
//
// Start it from a goroutine that is not locked to its thread, or else it ends
// with that thread (PR_SET_PDEATHSIG).
func (p *Part) Command(key string, argv []string, o Options) (*Command, error) {
	_, node, ok := plan.ParseNamespace(key)
	if !ok || len(argv) == 0 {
		return nil, fmt.Errorf("run %q in %q: need a node and a command", argv, key)
	}
	p.busy.RLock() // nobody sweeps what is not begun
	defer p.busy.RUnlock()
	c, err := p.prepare(key, node, argv, o)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", argv[0], key, err)
	}
	return c, nil
}

func (p *Part) prepare(key, node string, argv []string, o Options) (*Command, error) {
	owner, err := p.host.Owner(key)
	if err != nil {
		return nil, fmt.Errorf("the node is not here: %w", err)
	}
	given, err := p.setupOf(key)
	if err == nil {
		given, err = p.whole(given)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the node was given: %w", err)
	}
	if given.Carried {
		return nil, errCarried
	}
	if given.Machine() {
		return nil, errors.New("it is a machine, whose files and processes are its own: attach to its console, or go by its network")
	}
	spaces, err := p.open(key)
	if err != nil {
		return nil, err
	}
	c := p.newCommand(key)
	c.spaces = spaces
	if err := c.group().Make(); err != nil {
		c.Done()
		return nil, err
	}
	s := p.spec(c, key, node, argv, o)
	s.Env, s.Dir, s.As = variables(given.Setup), given.Workdir, cmp.Or(o.User, given.User)
	if err := c.become(sessionCommand, s); err != nil {
		c.Done()
		return nil, err
	}
	c.Env = append(environment(owner, node), c.Env...)
	return c, nil
}

// newCommand begins a session of a node.
func (p *Part) newCommand(key string) *Command {
	c := &Command{part: p, node: p.host.Group(key), name: sessionGroup + strings.ToLower(rand.Text())}
	p.running.Store(c.name, true)
	return c
}

// become makes a hidden subcommand of the session's first process.
func (c *Command) become(command string, spec any) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	c.Cmd = exec.Command(kernel.Inner(), InitCommand, command)
	c.Dir, c.Env = "/", []string{kernel.SpecVariable + "=" + string(text)}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: abandoned}
	return nil
}

func (p *Part) spec(c *Command, key, node string, argv []string, o Options) session {
	id, _, _ := plan.ParseNamespace(key)
	groups := c.group().Files()
	s := session{
		Node: node, Hosts: p.namesPath(plan.Fabric(id)), FRR: p.host.FRRDirs(key), Run: p.host.Run, Program: p.program,
		Groups: groups, Group: groups[0], Argv: argv, TTY: o.TTY, Memory: c.node.MemoryFiles(),
	}
	if o.Detach {
		s.Log = p.logPath(key)
	}
	for _, f := range c.spaces {
		s.Rooms = append(s.Rooms, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()))
	}
	return s
}

// Groups inside a node's: of sessions, and of what sessions left running.
const (
	sessionGroup = "session-"
	restGroup    = "rest"
)

func (c *Command) group() kernel.Group { return c.node.Sub(c.name) }

// Kill ends the command and all that it started, wherever that has moved.
func (c *Command) Kill() { _ = c.group().Remove() }

// moves bounds how often processes are moved that make others meanwhile.
const moves = 100

// Done releases what the command held, after it has ended. What it left running
// lives on with the node.
func (c *Command) Done() {
	closeAll(c.spaces)
	rest := c.node.Sub(restGroup)
	for range moves {
		pids, err := c.group().Processes()
		if err != nil || len(pids) == 0 {
			break
		}
		if rest.Make() != nil {
			break // the node is gone
		}
		for _, pid := range pids {
			_ = rest.Add(pid) // one that has ended is fine
		}
	}
	_ = c.group().Rmdir() // if that fails, it is swept when nothing is left in it
	c.part.running.Delete(c.name)
}

// sweepSessions ends what sessions of a former agent left, whose clients are
// gone, and removes empty groups.
func (p *Part) sweepSessions(key string) error {
	names, err := p.host.Group(key).Subs()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ours := p.running.Load(name); ours || !strings.HasPrefix(name, sessionGroup) {
			continue
		}
		if err := p.host.Group(key).Sub(name).Remove(); err != nil {
			return err
		}
	}
	return nil
}

// keyed is a lock for each key.
type keyed struct{ all sync.Map }

func (k *keyed) of(key string) *sync.Mutex {
	lock, _ := k.all.LoadOrStore(key, new(sync.Mutex))
	return lock.(*sync.Mutex)
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment has nothing of the host's in it.
func environment(owner uint32, node string) []string {
	home := "/tmp"
	if owner == 0 {
		home = "/root"
	}
	return []string{
		searchPath,
		"HOME=" + home, "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
		"LANG=C.UTF-8", "TERM=dumb", "SUBLET_NODE=" + node,
	}
}

// Names of the hidden subcommands.
const (
	InitCommand    = kernel.InitCommand
	sessionCommand = "session"
	copyCommand    = "copy"
	unpackCommand  = "unpack"
)

// Copy is the command that, in a node, packs a file or a tree of them to standard
// output (direction "out") or unpacks it from standard input ("in"), with the
// rights that commands have there.
func (p *Part) Copy(direction, path string) []string {
	return []string{SelfInside(p.host.Run), InitCommand, copyCommand, direction, path}
}

// Unpacker is a process that unpacks a layer of an image (image.Config).
func Unpacker() *exec.Cmd { return exec.Command(kernel.Inner(), InitCommand, unpackCommand) }

// Main is the hidden subcommand InitCommand: args follow its name. It returns
// the exit code.
func Main(args []string) int {
	var err error
	switch {
	case len(args) == 1 && args[0] == kernel.LaunchCommand:
		err = kernel.RunLaunch()
	case len(args) == 1 && args[0] == makerCommand:
		err = makeNamespaces()
	case len(args) == 1 && args[0] == startCommand:
		var s start
		if err = kernel.ReadSpec(&s); err == nil {
			var code int
			code, err = s.become()
			fmt.Fprintln(os.Stderr, "sublet:", err)
			return code
		}
	case len(args) == 1 && args[0] == superviseCommand:
		s := new(supervisor)
		if err = kernel.ReadSpec(s); err == nil && len(s.Groups) > 0 {
			err = join(&s.session.Groups, superviseCommand, s)
		} else if err == nil {
			err = s.run()
		}
	case len(args) == 1 && args[0] == shellCommand:
		s := new(terminal)
		if err = kernel.ReadSpec(s); err == nil && len(s.Groups) > 0 {
			err = join(&s.Groups, shellCommand, s)
		} else if err == nil {
			err = s.run()
		}
	case len(args) == 1 && args[0] == attachCommand:
		var s attached
		if err = kernel.ReadSpec(&s); err == nil && len(s.Groups) > 0 {
			err = join(&s.Groups, attachCommand, &s)
		} else if err == nil {
			err = s.run()
		}
	case len(args) == 1 && args[0] == stayCommand:
		signal.Ignore(unix.SIGCHLD)
		for {
			_ = unix.Pause()
		}
	case len(args) == 1 && args[0] == pauseCommand:
		var s pause
		if err = kernel.ReadSpec(&s); err == nil {
			err = s.run()
		}
	case len(args) == 1 && args[0] == ringsCommand:
		err = keepRings()
	case len(args) == 1 && args[0] == unpackCommand:
		err = image.Unpack()
	case len(args) == 3 && args[0] == copyCommand && args[1] == "out":
		err = filecopy.Pack(os.Stdout, args[2])
	case len(args) == 3 && args[0] == copyCommand && args[1] == "in":
		err = filecopy.Unpack(os.Stdin, args[2], "")
	case len(args) == 1 && args[0] == sessionCommand:
		var s session
		if err = kernel.ReadSpec(&s); err == nil && len(s.Groups) > 0 {
			err = join(&s.Groups, sessionCommand, &s)
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

// mostLog and keptLog bound the log of a node in bytes: what is longer than the
// first is cut to its last keptLog bytes.
const (
	mostLog = 4 << 20
	keptLog = 1 << 20
)

// logPath is where the output of commands goes that are left running. It counts
// as what the node writes to its /tmp, and is not seen inside.
func (p *Part) logPath(key string) string { return filepath.Join(p.scratchPath(key), "log") }

// openLog opens a node's log to write to its end.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
}

// trimLog cuts a node's log that is too long. What is written meanwhile may be lost.
func (p *Part) trimLog(key string) error { return trim(p.logPath(key)) }

func trim(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= mostLog {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	last := make([]byte, keptLog)
	n, err := f.ReadAt(last, info.Size()-keptLog)
	if n == 0 && err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Write(last[:n])
	return err
}
