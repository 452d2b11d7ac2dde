package vnet

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Setup is what a node is given to live on: files, environment, settings, programs.
type Setup struct {
	Kind    NodeKind          `json:"kind,omitempty"`       // what its processes run on
	Disk    Bytes             `json:"disk_bytes,omitempty"` // of a machine, or of what is kept; 0: as large as its image, or KeptDisk
	Restart Restart           `json:"restart,omitempty"`    // of a machine; "": RestartOnFailure
	State   NodeState         `json:"state,omitempty"`      // what becomes of what it writes
	Image   string            `json:"image,omitempty"`      // whose files it has; "": those of the host
	Files   []File            `json:"files,omitempty"`      // beside those
	Run     []Program         `json:"run,omitempty"`        // started in order, each when the one before it is ready
	Env     map[string]string `json:"env,omitempty"`        // of all its commands
	Workdir string            `json:"workdir,omitempty"`    // where its commands begin; "": /
	User    string            `json:"user,omitempty"`       // of all its commands, as ValidUser has it; "": its image's, or root
	Sysctls map[string]string `json:"sysctls,omitempty"`    // of its network, by name: see SafeSysctl
}

// Stated lists the fields that say something, for formats without them; none:
// nothing is given.
func (s Setup) Stated() (fields []string) {
	for _, f := range []struct {
		name   string
		stated bool
	}{{"kind", s.Kind != ""}, {"disk", s.Disk != 0}, {"restart", s.Restart != ""}, {"state", s.State != ""}, {"image", s.Image != ""}, {"files", len(s.Files) > 0}, {"run", len(s.Run) > 0}, {"env", len(s.Env) > 0}, {"workdir", s.Workdir != ""}, {"user", s.User != ""}, {"sysctls", len(s.Sysctls) > 0}} {
		if f.stated {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// Program is a command that runs in a node from its start on.
type Program struct {
	Cmd []string `json:"cmd"` // with its arguments; no shell
	// Entrypoint says that Cmd are arguments of the entry point of the node's
	// image; none: those that the image states.
	Entrypoint bool    `json:"entrypoint,omitempty"`
	Ready      Ready   `json:"ready,omitzero"`    // zero: as soon as it is started
	Restart    Restart `json:"restart,omitempty"` // "": RestartNo
	User       string  `json:"user,omitempty"`    // "": the node's
}

// Ready is how a program shows that others can use it: one of these.
type Ready struct {
	Port int      `json:"port,omitempty"` // TCP, on which something in the node listens
	Cmd  []string `json:"cmd,omitempty"`  // that ends with exit code 0 in the node
	Line string   `json:"line,omitempty"` // part of a line of the program's output
}

// Restart says when a program is started again that ended by itself.
type Restart string

// Policies of starting again. A program that is not started again and ended
// with another exit code than 0 leaves its lease degraded.
const (
	RestartNo        Restart = "no"
	RestartOnFailure Restart = "on-failure" // unless its exit code is 0
	RestartAlways    Restart = "always"
)

// Restarts lists the policies, the default first.
var Restarts = []Restart{RestartNo, RestartOnFailure, RestartAlways}

// Bounds of what a node is given.
const (
	MaxPrograms  = 32
	MaxArguments = 256  // of one command
	MaxText      = 4096 // bytes of an argument, of a line, of a variable's value, of a path
	MaxVariables = 128
	// MaxSetup bounds all texts of a node but its files, in bytes: as JSON, where one byte may
	// become six, they must fit into one variable of a process (128 KiB, execve(2)).
	MaxSetup = 16 << 10
	// MinRunMemory is what a node with programs needs: what supervises them
	// counts against its limit too.
	MinRunMemory = 16 * MiB
)

var variableName = lazy(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// check checks what is given to the node written at path.
func (s Setup) check(path string) error {
	if s.Image != "" && !ValidImage(s.Image) {
		return fieldf(path+".image", "%q is no name of an image: write a path below the directory of images, such as web.tar, or a reference such as docker.io/library/alpine:3", s.Image)
	}
	if err := checkFiles(path+".files", s.Files); err != nil {
		return err
	}
	if len(s.Run) > MaxPrograms {
		return fieldf(path+".run", "%d programs are more than %d: start some of them in one script", len(s.Run), MaxPrograms)
	}
	for i, p := range s.Run {
		if err := p.check(at(path+".run", i)); err != nil {
			return err
		}
		if p.Entrypoint && s.Image == "" {
			return fieldf(at(path+".run", i)+".entrypoint", "is that of an image: state image too, or leave it out")
		}
	}
	if err := s.checkEnv(path + ".env"); err != nil {
		return err
	}
	if err := checkWorkdir(path+".workdir", s.Workdir); err != nil {
		return err
	}
	if err := checkUser(path+".user", s.User); err != nil {
		return err
	}
	if err := s.checkSysctls(path + ".sysctls"); err != nil {
		return err
	}
	if n := s.size(); n > MaxSetup {
		return fieldf(path, "its commands and variables have %d bytes, more than %d: shorten them", n, MaxSetup)
	}
	return nil
}

// imageName is a path or a reference: letters, digits and . _ - : @ + between
// slashes, no part of it . or .. or an option.
var imageName = lazy(`^[A-Za-z0-9_][A-Za-z0-9._:@+-]*(/[A-Za-z0-9_][A-Za-z0-9._:@+-]*)*$`)

// MaxImage is how long the name of an image may be, in bytes.
const MaxImage = 255

// ValidImage says whether a text can name an image.
func ValidImage(name string) bool { return len(name) <= MaxImage && imageName().MatchString(name) }

// size is that of all texts but files, in bytes.
func (s Setup) size() (n int) {
	for _, p := range s.Run {
		for _, word := range slices.Concat(p.Cmd, p.Ready.Cmd) {
			n += len(word)
		}
		n += len(p.Ready.Line)
	}
	for name, value := range s.Env {
		n += len(name) + len(value)
	}
	return n
}

func (p Program) check(path string) error {
	if !p.Entrypoint || len(p.Cmd) > 0 {
		if err := checkCommand(path+".cmd", p.Cmd); err != nil {
			return err
		}
	}
	if p.Restart != "" && !slices.Contains(Restarts, p.Restart) {
		return fieldf(path+".restart", "%q is no policy: choose no, on-failure or always", string(p.Restart))
	}
	if err := checkUser(path+".user", p.User); err != nil {
		return err
	}
	return p.Ready.check(path + ".ready")
}

// stated is how many of the ways are.
func (r Ready) stated() (n int) {
	for _, there := range []bool{r.Port != 0, r.Cmd != nil, r.Line != ""} {
		if there {
			n++
		}
	}
	return n
}

func (r Ready) check(path string) error {
	switch {
	case r.stated() > 1:
		return fieldf(path, "states several of a port, a command and a line: keep one")
	case r.Port < 0 || r.Port > 65535:
		return fieldf(path, "is no port, command or line of output: write a port from 1 to 65535, a list or a text")
	case r.Cmd != nil:
		return checkCommand(path, r.Cmd)
	}
	return checkText(path, r.Line)
}

func checkCommand(path string, cmd []string) error {
	switch {
	case len(cmd) == 0 || cmd[0] == "":
		return fieldf(path, "no command: write a list of a program and its arguments, such as [sleep, infinity]")
	case len(cmd) > MaxArguments:
		return fieldf(path, "%d arguments are more than %d: put the command into a script", len(cmd), MaxArguments)
	}
	for i, word := range cmd {
		if err := checkText(at(path, i), word); err != nil {
			return err
		}
	}
	return nil
}

// checkText wants what the kernel takes as an argument or a variable.
func checkText(path, text string) error {
	switch {
	case len(text) > MaxText:
		return fieldf(path, "has %d bytes, more than %d: shorten it", len(text), MaxText)
	case strings.ContainsRune(text, 0):
		return fieldf(path, "contains a NUL character: leave it out")
	}
	return nil
}

func (s Setup) checkEnv(path string) error {
	if len(s.Env) > MaxVariables {
		return fieldf(path, "%d variables are more than %d: keep fewer", len(s.Env), MaxVariables)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !variableName().MatchString(name) {
			return fieldf(path, "%q is no name of a variable: use letters, digits and _, at most 128, not a digit first", name)
		}
		if err := checkText(key(path, name), s.Env[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkWorkdir wants a path from the root of the node.
func checkWorkdir(field, dir string) error {
	if dir != "" && (!path.IsAbs(dir) || path.Clean(dir) != dir) {
		return fieldf(field, "%q is not a path from the root without . and ..: write one such as /srv", dir)
	}
	return checkText(field, dir)
}
