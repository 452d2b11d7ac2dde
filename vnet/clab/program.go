package clab

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/shlex" // containerlab's own choice, so that words are split alike
	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// life is what a node does beside forwarding.
type life struct {
	plain    bool // of kind linux, where nodes with several links forward
	forwards string
	start    *vnet.Program // cmd and entrypoint
	exec     []command
}

// command is one of exec, with its number there from 1 on.
type command struct {
	number int
	words  []string
}

// living are the words of a node that are programs, files and settings.
var living = []string{"cmd", "entrypoint", "restart-policy", "exec", "binds", "sysctls", "user"}

// ipForward is the setting by which a node forwards.
const ipForward = "net.ipv4.ip_forward"

// live reads what a node runs.
func (r *reader) live(node string, s *vnet.Setup, places ...*yaml.Node) (l life, err error) {
	where := "node " + short(node)
	if l.start, err = r.start(where, s.Image != "", places...); err != nil {
		return l, err
	}
	if l.exec, err = r.exec(where, places...); err != nil {
		return l, err
	}
	if s.Files, err = r.binds(node, places...); err != nil {
		return l, err
	}
	if s.Sysctls, err = r.words("sysctls", "setting", places...); err != nil {
		return l, err
	}
	l.forwards = s.Sysctls[ipForward]
	delete(s.Sysctls, ipForward)
	for name := range s.Sysctls {
		if !vnet.SafeSysctl(name) {
			r.lost(first("sysctls", places...), where, "sysctl %s is left out: a request may not state it", short(name))
			delete(s.Sysctls, name)
		}
	}
	if len(s.Sysctls) == 0 {
		s.Sysctls = nil
	}
	return l, nil
}

// start is the node's own program, nil if the image says it alone.
func (r *reader) start(where string, image bool, places ...*yaml.Node) (*vnet.Program, error) {
	entrypoint, err := r.split(where, first("entrypoint", places...))
	if err != nil {
		return nil, err
	}
	cmd, err := r.split(where, first("cmd", places...))
	if err != nil {
		return nil, err
	}
	policy := first("restart-policy", places...)
	restart, known := restarts[strings.ToLower(policy.Value)]
	if policy.Kind != 0 && !known {
		r.lost(policy, where, "restart-policy %s is left out: it is none", short(policy.Value))
	}
	if len(entrypoint)+len(cmd) == 0 && restart == "" {
		return nil, nil
	}
	p := vnet.Program{Cmd: slices.Concat(entrypoint, cmd), Entrypoint: image && len(entrypoint) == 0, Restart: restart}
	if len(p.Cmd) == 0 && !p.Entrypoint {
		return nil, nil
	}
	return &p, nil
}

var restarts = map[string]vnet.Restart{"no": "", "on-failure": vnet.RestartOnFailure, "always": vnet.RestartAlways, "unless-stopped": vnet.RestartAlways}

// split takes a command line apart as containerlab does.
func (r *reader) split(where string, n *yaml.Node) ([]string, error) {
	if n.Kind == 0 {
		return nil, nil
	}
	words, err := shlex.Split(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return nil, r.fail(n, "%s: this is no command: write one line, such as sleep infinity", where)
	}
	return words, nil
}

// exec are the commands of all places: those of defaults first, the node's last.
func (r *reader) exec(where string, places ...*yaml.Node) (list []command, err error) {
	for _, p := range slices.Backward(places) {
		n := value(p, "exec")
		if n.Kind != 0 && n.Kind != yaml.SequenceNode {
			return nil, r.fail(n, "%s: exec is no list: write a line for each command", where)
		}
		for _, line := range n.Content {
			words, err := r.split(where, line)
			if err != nil {
				return nil, err
			}
			if c := (command{len(list) + 1, words}); len(words) > 0 && len(c.script()) > vnet.MaxText/2 {
				r.lost(line, where, "exec %d is left out: it is longer than %d bytes", c.number, vnet.MaxText/2)
			} else if len(words) > 0 {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// script is a line of sh(1) that runs the command and goes on if it fails, as
// containerlab does.
func (c command) script() string {
	return quoted(c.words) + fmt.Sprintf("|| echo \"exec %d: exit code $?\" >&2\n", c.number)
}

// quoted is a command line, each word in quotes and followed by a space.
func quoted(words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "' ")
	}
	return b.String()
}

// scripts are programs that run commands one after another. A network runs when
// they have run.
func scripts(list []command) (programs []vnet.Program) {
	for len(list) > 0 {
		text, n := "", 0
		for ; n < len(list) && (n == 0 || len(text)+len(list[n].script()) < vnet.MaxText-64); n++ {
			text += list[n].script()
		}
		done := fmt.Sprintf("exec: %d ran", list[n-1].number)
		programs = append(programs, vnet.Program{Cmd: []string{"sh", "-c", text + "echo '" + done + "'"}, Ready: vnet.Ready{Line: done}})
		list = list[n:]
	}
	return programs
}

// ranEnd is what script puts behind a command.
var ranEnd = regexp.MustCompile(`\|\| echo "exec ([0-9]{1,6}): exit code \$\?" >&2\n`)

// commandsOf are the lines of exec that scripts made a program of, each word in quotes;
// false: it did not.
func commandsOf(p vnet.Program) (lines []string, ok bool) {
	if len(p.Cmd) != 3 || p.Restart != "" && p.Restart != vnet.RestartNo {
		return nil, false
	}
	var list []command
	text := p.Cmd[2]
	for at := ranEnd.FindStringSubmatchIndex(text); at != nil; at = ranEnd.FindStringSubmatchIndex(text) {
		words, err := shlex.Split(text[:at[0]])
		if err != nil {
			return nil, false
		}
		number, _ := strconv.Atoi(text[at[2]:at[3]]) // digits
		list, lines, text = append(list, command{number, words}), append(lines, strings.TrimSpace(quoted(words))), text[at[1]:]
	}
	made := scripts(list)
	if len(made) != 1 {
		return nil, false
	}
	made[0].Restart = p.Restart
	return lines, reflect.DeepEqual(made[0], p)
}

// address is what ip-address(8) gives an interface, if that is all it does.
func (c command) address() (p netip.Prefix, device string, ok bool) {
	words := slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return w == "-4" || w == "-6" })
	if len(words) != 6 || words[0] != "ip" && words[0] != "/sbin/ip" || !slices.Contains([]string{"a", "addr", "address"}, words[1]) ||
		!slices.Contains([]string{"add", "replace"}, words[2]) || words[4] != "dev" {
		return p, "", false
	}
	p, err := netip.ParsePrefix(words[3])
	return p, words[5], err == nil && liftable(p)
}

// liftable says whether an address can be one of a link's end.
func liftable(p netip.Prefix) bool { return !p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() }

// complete puts what nodes do into the request. Addresses that commands state
// are those of the links' ends, so that names and Sublet's own addresses go
// along with them, where a request can say them.
func (r *reader) complete() error {
	r.settings()
	bare := r.request
	lifted := 0
	r.request, lifted = r.alive(bare, true)
	r.request.Fill()
	if err := r.request.Check(); err != nil && lifted > 0 {
		plain, _ := r.alive(bare, false)
		plain.Fill()
		if plain.Check() == nil {
			r.request = plain
			r.notes = append(r.notes, vnet.Note{Where: "topology", Text: "addresses of exec and of FRR are set there, beside those that Sublet gives: as addresses of links, " + err.Error()})
		}
	}
	return r.check()
}

// settings takes those away that are of interfaces which nodes do not have here.
func (r *reader) settings() {
	for _, n := range r.request.All() {
		for _, name := range slices.Sorted(maps.Keys(n.Sysctls)) {
			device := vnet.SysctlDevice(name)
			if device == "" || slices.ContainsFunc(r.interfaces[n.Name], func(p port) bool { return p.name == device }) {
				continue
			}
			r.lost(r.nodeAt[n.Name], "node "+n.Name, "sysctl %s is left out: there is no such interface", name)
			delete(n.Sysctls, name)
		}
	}
}

// alive is the request with what nodes do, and how many commands became addresses.
func (r *reader) alive(bare vnet.Request, lift bool) (vnet.Request, int) {
	made, lifted := bare, 0
	made.Nodes, made.Routers, made.Links = nil, nil, slices.Clone(bare.Links)
	put := func(n vnet.VirtualNode, isRouter bool) {
		l := r.lives[n.Name]
		rest := l.exec
		if lift {
			rest = slices.DeleteFunc(slices.Clone(rest), func(c command) bool { return r.lift(c, n.Name, made.Links) })
			lifted += len(l.exec) - len(rest) + r.liftFRR(&n, made.Links)
		}
		n.Run = l.programs(n.Image != "", rest)
		forwards := isRouter || n.FRR != "" || l.plain && (l.forwards == "1" || l.forwards == "" && len(r.interfaces[n.Name]) > 1)
		if !forwards {
			r.at[fmt.Sprintf("nodes[%d]", len(made.Nodes))] = r.nodeAt[n.Name]
			made.Nodes = append(made.Nodes, n)
			return
		}
		if len(n.Run) > 0 || len(n.Files) > 0 && !r.NoImages || isRouter && n.Image != "" || n.FRR != "" {
			n.Protocol = vnet.ProtocolNone
		}
		r.at[fmt.Sprintf("routers[%d]", len(made.Routers))] = r.nodeAt[n.Name]
		made.Routers = append(made.Routers, n)
	}
	for _, n := range bare.Nodes {
		put(n, false)
	}
	for _, n := range bare.Routers {
		put(n, true)
	}
	return made, lifted
}

// programs are the node's own, and then its commands.
func (l life) programs(image bool, rest []command) (list []vnet.Program) {
	switch {
	case l.start != nil:
		list = append(list, *l.start)
	case image && len(rest) > 0:
		list = append(list, vnet.Program{Entrypoint: true})
	}
	return append(list, scripts(rest)...)
}

// lift gives a link's end the address that a command gives the interface there.
func (r *reader) lift(c command, node string, links []vnet.VirtualLink) bool {
	p, device, ok := c.address()
	return ok && r.give(p, device, node, links)
}

// give gives a link's end an address, if a node has an interface of that name.
func (r *reader) give(p netip.Prefix, device, node string, links []vnet.VirtualLink) bool {
	for _, at := range r.interfaces[node] {
		if at.name == device {
			list := &links[at.link].Addresses[at.end]
			*list = append(slices.Clone(*list), p)
			return true
		}
	}
	return false
}
