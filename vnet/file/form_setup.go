package file

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// setup is what a node is given to live on.
type setup struct {
	Kind    string            `yaml:"kind,omitempty" jsonschema_description:"vm: a virtual machine with a kernel of its own, whose disk is the image (docs/machines.md). Default: processes on the kernel of the host." jsonschema:"enum=vm"`
	Disk    size              `yaml:"disk,omitempty" jsonschema_description:"kind vm: size of the disk, such as 8GiB. Default: that of the image. With state keep: size of what is kept. Default: 1GiB."`
	Restart string            `yaml:"restart,omitempty" jsonschema_description:"kind vm: whether a machine that ended is started again; on-failure: unless it was switched off from inside." jsonschema:"enum=no,enum=on-failure,enum=always,default=on-failure"`
	State   string            `yaml:"state,omitempty" jsonschema_description:"keep: what the node writes lasts as long as the lease, on a disk of its own (docs/programs.md). Default: it goes when the node ends." jsonschema:"enum=keep"`
	Image   string            `yaml:"image,omitempty" jsonschema_description:"Image whose files the node has, in a root file system of its own, and whose command it runs unless run says another: a path below the host's directory of images, or a reference to a registry that the operator allows." jsonschema:"maxLength=255,pattern=^[A-Za-z0-9_]"`
	Files   []nodeFile        `yaml:"files,omitempty" jsonschema_description:"Files that the node finds when it begins, in place of what was there." jsonschema:"maxItems=64"`
	Run     []program         `yaml:"run,omitempty" jsonschema_description:"Programs, started in order, each when the one before it is ready. They live as long as the node; the network is running when all of them are ready." jsonschema:"maxItems=32"`
	Env     map[string]text   `yaml:"env,omitempty" jsonschema_description:"Variables of all commands in the node."`
	Workdir string            `yaml:"workdir,omitempty" jsonschema_description:"Where commands begin. Default: /." jsonschema:"pattern=^/"`
	User    string            `yaml:"user,omitempty" jsonschema_description:"User of all commands in the node: a name or a number, and a group behind a colon if it is another. Default: that of the image, or root." jsonschema:"pattern=^[A-Za-z0-9_]"`
	Sysctls map[string]string `yaml:"sysctls,omitempty" jsonschema_description:"Settings of the node's network, such as net.ipv4.tcp_ecn."`
}

// text is any text, written in quotes where YAML needs escapes for it.
type text string

// MarshalYAML chooses the quotes.
func (t text) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(t)}
	if strings.ContainsFunc(string(t), func(r rune) bool { return !unicode.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, nil
}

// texts and stringsOf convert lists of them; none stays none.
func texts(list []string) (made []text) {
	for _, s := range list {
		made = append(made, text(s))
	}
	return made
}

func stringsOf(list []text) (made []string) {
	for _, t := range list {
		made = append(made, string(t))
	}
	return made
}

// program is a list of arguments, or a mapping.
type program struct {
	Cmd        []text `yaml:"cmd,omitempty"`
	Entrypoint bool   `yaml:"entrypoint,omitempty"`
	Ready      *ready `yaml:"ready,omitempty"`
	Restart    string `yaml:"restart,omitempty"`
	User       string `yaml:"user,omitempty"`
}

func (p *program) short(n *yaml.Node) any {
	if n.Kind == yaml.MappingNode {
		return nil
	}
	return &p.Cmd
}

// MarshalYAML writes the shortest form.
func (p program) MarshalYAML() (any, error) {
	if p.Ready == nil && p.Restart == "" && p.User == "" && !p.Entrypoint {
		return p.Cmd, nil
	}
	type whole program
	return whole(p), nil
}

// ready is a number (a port), a list (a command) or a text (a line).
type ready struct {
	Port int
	Cmd  []text
	Line text
}

func (r *ready) short(n *yaml.Node) any {
	switch {
	case n.Kind == yaml.SequenceNode:
		return &r.Cmd
	case n.ShortTag() == "!!int":
		return &r.Port
	}
	return &r.Line
}

// MarshalYAML writes the one that is stated.
func (r ready) MarshalYAML() (any, error) {
	switch {
	case r.Cmd != nil:
		return r.Cmd, nil
	case r.Port != 0:
		return r.Port, nil
	}
	return r.Line, nil
}

func (f setup) setup() vnet.Setup {
	s := vnet.Setup{Kind: vnet.NodeKind(f.Kind), Disk: vnet.Bytes(f.Disk), Restart: vnet.Restart(f.Restart), State: vnet.NodeState(f.State), Image: f.Image, Workdir: f.Workdir, User: f.User, Sysctls: some(f.Sysctls)}
	for name, value := range f.Env {
		if s.Env == nil {
			s.Env = make(map[string]string)
		}
		s.Env[name] = string(value)
	}
	for _, one := range f.Files {
		s.Files = append(s.Files, one.file())
	}
	for _, p := range f.Run {
		made := vnet.Program{Cmd: stringsOf(p.Cmd), Entrypoint: p.Entrypoint, Restart: vnet.Restart(p.Restart), User: p.User}
		if p.Ready != nil {
			made.Ready = p.Ready.ready()
		}
		s.Run = append(s.Run, made)
	}
	return s
}

// ready is what is stated; 0 and "" are vnet's words for nothing.
func (r ready) ready() vnet.Ready {
	if r.Cmd == nil && r.Line == "" && r.Port == 0 {
		r.Port = -1
	}
	made := vnet.Ready{Port: r.Port, Line: string(r.Line)}
	if r.Cmd != nil {
		made.Cmd = append([]string{}, stringsOf(r.Cmd)...) // an empty one is refused, not taken for none
	}
	return made
}

func setupForm(s vnet.Setup) setup {
	f := setup{Kind: string(s.Kind), Disk: size(s.Disk), Restart: string(s.Restart), State: string(s.State), Image: s.Image, Workdir: s.Workdir, User: s.User, Sysctls: s.Sysctls}
	for name, value := range s.Env {
		if f.Env == nil {
			f.Env = make(map[string]text)
		}
		f.Env[name] = text(value)
	}
	for _, one := range s.Files {
		f.Files = append(f.Files, nodeFileForm(one))
	}
	for _, p := range s.Run {
		made := program{Cmd: texts(p.Cmd), Entrypoint: p.Entrypoint, Restart: string(p.Restart), User: p.User}
		if p.Ready.Port != 0 || p.Ready.Cmd != nil || p.Ready.Line != "" {
			made.Ready = &ready{Port: p.Ready.Port, Cmd: texts(p.Ready.Cmd), Line: text(p.Ready.Line)}
		}
		f.Run = append(f.Run, made)
	}
	return f
}
