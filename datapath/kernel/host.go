package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Config says where a host keeps its things.
type Config struct {
	Host       string // substrate name
	Run        string // $SUBLET_RUN
	Namespace  string // file of the host's network namespace; "" is the caller's
	CgroupRoot string // where control groups are mounted; "" is /sys/fs/cgroup
	Cgroup     string // control group below which the host's are; "" is sublet/HOST
}

// Host is one substrate host as its parts see it; all of them share one.
type Host struct {
	Config
	home *os.File

	mu      sync.Mutex
	cgroups Cgroups
	dirs    map[string]seen // by kind
}

// NewHost looks up the host's namespace and control groups.
func NewHost(config Config) (*Host, error) {
	if config.Host == "" || config.Run == "" {
		return nil, errors.New("a host needs a name and a run directory")
	}
	if config.CgroupRoot == "" {
		config.CgroupRoot = "/sys/fs/cgroup"
	}
	if config.Cgroup == "" {
		config.Cgroup = filepath.Join("sublet", config.Host)
	}
	h := &Host{Config: config, dirs: make(map[string]seen)}
	var err error
	if config.Namespace == "" {
		h.home, err = Current()
	} else {
		h.home, err = OpenNamespace(config.Namespace)
	}
	if err != nil {
		return nil, err
	}
	h.cgroups, _ = FindCgroups(config.CgroupRoot) // LookGroups tells
	return h, os.MkdirAll(h.Run, 0o755)
}

// kinds of files that a host may have. A directory comes with the first thing
// in it and goes with the last.
var kinds = []string{"netns", "userns", "hosts", "frr", "vty", "bpf", "vxswitch", "openflow", "impair", "tmp", "kept", "setup", "still", "nat", "access", "join", "device", "chain", "ids", "nsh"}

// Tidy removes the host's directories that are empty, and those of all hosts.
func (h *Host) Tidy() {
	for _, kind := range kinds {
		if os.Remove(h.Dir(kind)) == nil { // refused while anything is there
			h.note(kind, false)
		}
		_ = os.Remove(filepath.Dir(h.Dir(kind)))
	}
}

// Group is one of this host's control groups.
func (h *Host) Group(name string) Group {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cgroups.Group(filepath.Join(h.Cgroup, name))
}

// LookGroups says whether control groups can be looked at; an error is
// ErrUnseen. What is mounted is read again as long as it cannot.
func (h *Host) LookGroups() error {
	if h.Group("x").Look() == nil {
		return nil
	}
	found, err := FindCgroups(h.CgroupRoot)
	if err != nil {
		return fmt.Errorf("control groups %w at %s: %w", ErrUnseen, h.CgroupRoot, err)
	}
	if err := found.Group("x").Look(); err != nil {
		return fmt.Errorf("control groups %w at %s: %w", ErrUnseen, h.CgroupRoot, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cgroups = found
	return nil
}

// Close releases the host's namespace, and removes the directory of its bpf file
// system if that is not mounted any more.
func (h *Host) Close() error {
	_ = os.Remove(h.Dir("bpf")) // refused while it is
	_ = os.Remove(filepath.Dir(h.Dir("bpf")))
	return h.home.Close()
}

// Home is the host's own network namespace.
func (h *Host) Home() *os.File { return h.home }

// Path of a namespace file of this host.
func (h *Host) Path(namespace string) string { return filepath.Join(h.Dir("netns"), namespace) }

// Dir is this host's directory for one kind of file, such as "netns".
func (h *Host) Dir(kind string) string { return filepath.Join(h.Run, kind, h.Host) }

// Open opens one of the host's namespaces by name.
func (h *Host) Open(namespace string) (*os.File, error) { return OpenNamespace(h.Path(namespace)) }

// MakeSilent makes a namespace unless it is there: without IPv6 and without
// forwarding, so that nothing in it answers or passes on a frame.
func (h *Host) MakeSilent(namespace string) error {
	ns, err := h.Open(namespace)
	if err == nil {
		return ns.Close()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if ns, err = NewNamespace(silence); err != nil {
		return err
	}
	defer ns.Close()
	return BindConcealed(ns, h.Path(namespace))
}

func silence() error {
	for _, s := range []string{"ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"} {
		if err := Sysctl(s, "1"); err != nil {
			return err
		}
	}
	return Sysctl("ipv4/ip_forward", "0")
}

// NamespaceOf is the id by which a connection's namespace knows another one of
// the host's; -1: it does not, or there is none.
func (h *Host) NamespaceOf(c *Conn, namespace string) (int, error) {
	ns, err := h.Open(namespace)
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	return c.NamespaceID(ns.Fd())
}

// Dial opens a netlink socket in one of the host's namespaces; "" is Home.
func (h *Host) Dial(namespace string) (*Conn, error) {
	if namespace == "" {
		return DialIn(h.home)
	}
	ns, err := h.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return DialIn(ns)
}

// Names lists the host's files of one kind, sorted, without what they conceal;
// none without a directory. One that cannot be looked at is ErrUnseen.
func (h *Host) Names(kind string) ([]string, error) {
	if err := h.Look(kind); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(h.Dir(kind))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // Look says that it was empty
		return nil, fmt.Errorf("%s %w: %w", h.Dir(kind), ErrUnseen, err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), hidden) {
			names = append(names, e.Name())
		}
	}
	h.note(kind, len(names) > 0)
	return names, nil
}
