package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	Cgroups Cgroups
	home    *os.File
}

// NewHost looks up the host's namespace and control groups, and makes its
// directories.
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
	h := &Host{Config: config}
	var err error
	if config.Namespace == "" {
		h.home, err = Current()
	} else {
		h.home, err = OpenNamespace(config.Namespace)
	}
	if err != nil {
		return nil, err
	}
	if h.Cgroups, err = FindCgroups(config.CgroupRoot); err == nil {
		err = h.makeDirs()
	}
	return h, err
}

// kinds of files that every host may have, and who may look at them. Their
// directories are the host's, not a lease's, so they come and go with it.
var kinds = map[string]os.FileMode{"netns": 0o700, "userns": 0o700, "hosts": 0o700, "frr": 0o711, "bpf": 0o700, "vxswitch": 0o700, "tmp": 0o700}

func (h *Host) makeDirs() error {
	for kind, mode := range kinds {
		if err := os.MkdirAll(h.Dir(kind), mode); err != nil {
			return err
		}
	}
	return nil
}

// Group is one of this host's control groups.
func (h *Host) Group(name string) Group { return h.Cgroups.Group(filepath.Join(h.Cgroup, name)) }

// Close releases the host's namespace and removes its directories if they are
// empty.
func (h *Host) Close() error {
	for kind := range kinds {
		_ = os.Remove(h.Dir(kind)) // refused while something runs
	}
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

// Names lists the host's files of one kind, sorted, without what they conceal; a missing directory is empty.
func (h *Host) Names(kind string) ([]string, error) {
	entries, err := os.ReadDir(h.Dir(kind))
	if os.IsNotExist(err) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), hidden) {
			names = append(names, e.Name())
		}
	}
	return names, err
}
