package vnode

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/kdomanski/iso9660"
	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// seed is what cloud-init finds in a machine at its first start: the files of its
// data source NoCloud (cloudinit.readthedocs.io, reference/datasources/nocloud).
type seed struct {
	MetaData, UserData, NetworkConfig []byte
}

// seedOf says a machine's name, its interfaces as the node has them, and what else
// the node is given. JSON is YAML, and needs no quoting of ours.
func seedOf(node string, s vnet.Setup, nics []nic, names string) seed {
	files, commands := seeds(s)
	if names != "" {
		files = append(files, file{Path: hostsFile, Text: names, Append: true})
	}
	made := seed{
		UserData: append([]byte("#cloud-config\n"), lines(map[string]any{
			"hostname": node, "write_files": files, "bootcmd": routeCommands(nics), "runcmd": commands,
		})...),
		NetworkConfig: lines(map[string]any{"version": 2, "ethernets": ethernets(nics)}),
	}
	made.MetaData = lines(map[string]string{
		// Another seed is another machine, which is set up anew.
		"instance-id":    fmt.Sprintf("sublet-%x", sha256.Sum256(slices.Concat(made.UserData, made.NetworkConfig)))[:32],
		"local-hostname": node,
	})
	return made
}

func lines(v any) []byte {
	text, _ := json.MarshalIndent(v, "", " ") // of texts and numbers only
	return append(text, '\n')
}

// file is one of cloud-init's module write_files.
type file struct {
	Path   string `json:"path"`
	Text   string `json:"content"`
	Mode   string `json:"permissions,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Late   bool   `json:"defer,omitempty"` // when users are there
	Append bool   `json:"append,omitempty"`
}

// Where a machine finds what a node is given.
const (
	variablesFile = "/etc/profile.d/sublet.sh"
	settingsFile  = "/etc/sysctl.d/90-sublet.conf"
)

// seeds are the files and commands of a machine's request. Commands see its
// variables, and begin where it says.
func seeds(s vnet.Setup) (files []file, commands [][]string) {
	if len(s.Env) > 0 {
		files = append(files, file{Path: variablesFile, Text: exports(s.Env), Mode: "0644"})
		commands = append(commands, []string{".", variablesFile})
	}
	if len(s.Sysctls) > 0 {
		var text strings.Builder
		for _, name := range s.Settings() {
			fmt.Fprintf(&text, "%s = %s\n", name, s.Sysctls[name])
		}
		files = append(files, file{Path: settingsFile, Text: text.String(), Mode: "0644"})
		commands = append(commands, []string{"sysctl", "-q", "-p", settingsFile})
	}
	if s.Workdir != "" {
		commands = append(commands, []string{"mkdir", "-p", s.Workdir}, []string{"cd", s.Workdir})
	}
	for _, f := range s.Files {
		files = append(files, file{Path: f.Path, Text: f.Text, Mode: cmp.Or(f.Mode, "0644"), Owner: f.Owner, Late: f.Owner != ""})
	}
	for _, p := range s.Run {
		commands = append(commands, p.Cmd)
	}
	return files, commands
}

// exports sets variables in a shell.
func exports(env map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return text.String()
}

// ethernet is an interface in cloud-init's network configuration, version 2.
type ethernet struct {
	Match     map[string]string `json:"match"`
	Name      string            `json:"set-name"`
	MTU       int               `json:"mtu"`
	Routers   bool              `json:"accept-ra"`
	Addresses []netip.Prefix    `json:"addresses,omitempty"`
	Routes    []route           `json:"routes,omitempty"`
}

type route struct {
	To     string     `json:"to"`
	Via    netip.Addr `json:"via,omitzero"`
	OnLink bool       `json:"on-link,omitempty"`
	Scope  string     `json:"scope,omitempty"`
}

func ethernets(nics []nic) map[string]ethernet {
	all := make(map[string]ethernet)
	for _, n := range nics {
		e := ethernet{Match: map[string]string{"macaddress": n.mac()}, Name: n.Name, MTU: n.MTU}
		for _, a := range n.addresses {
			e.Addresses = append(e.Addresses, n.prefix(a.Local, a.Reach))
		}
		e.Routes = n.allRoutes()
		all[n.Name] = e
	}
	return all
}

// prefix is an address with its subnet, or alone if it reaches a peer.
func (n nic) prefix(local netip.Addr, reach netip.Prefix) netip.Prefix {
	if reach.Contains(local) {
		return netip.PrefixFrom(local, reach.Bits())
	}
	return netip.PrefixFrom(local, local.BitLen())
}

// allRoutes are the routes that an interface's addresses do not bring, those to
// neighbours first.
func (n nic) allRoutes() (list []route) {
	for _, a := range n.addresses {
		if !a.Reach.Contains(a.Local) {
			list = append(list, route{To: a.Reach.String(), Scope: "link"})
		}
	}
	for _, r := range n.routes {
		if !r.Via.IsValid() {
			list = append(list, route{To: r.Prefix.String(), Scope: "link"})
		}
	}
	for _, r := range n.routes {
		if r.Via.IsValid() {
			list = append(list, route{To: r.Prefix.String(), Via: r.Via, OnLink: true})
		}
	}
	return list
}

// routeCommands set the routes once more: not all that turns the network
// configuration into a distribution's own knows routes to neighbours.
func routeCommands(nics []nic) (commands [][]string) {
	for _, n := range nics {
		for _, r := range n.allRoutes() {
			command := []string{"ip", "route", "replace", r.To}
			if r.Via.IsValid() {
				command = append(command, "via", r.Via.String(), "onlink")
			}
			commands = append(commands, append(command, "dev", n.Name))
		}
	}
	return commands
}

// volume is how cloud-init knows the file system.
const volume = "cidata"

// image is the seed as an ISO 9660 file system, in a file of memory.
func (s seed) image() (*os.File, error) {
	w, err := iso9660.NewWriter()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Cleanup() }() // its files are small, and of this node
	for name, text := range map[string][]byte{"meta-data": s.MetaData, "user-data": s.UserData, "network-config": s.NetworkConfig} {
		if err := w.AddFile(strings.NewReader(string(text)), name); err != nil {
			return nil, err
		}
	}
	fd, err := unix.MemfdCreate(volume, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), volume)
	defer f.Close()
	if err := w.WriteTo(f, volume); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)) // QEMU takes no file for reading that can be written
}
