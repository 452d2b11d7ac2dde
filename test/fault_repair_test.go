package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
	product "sublet/lab"
	"sublet/plan"
)

// bystander shares h1 with the network that is damaged, but no node, link or
// uplink.
//
//	h1:  y ---near--- x           h3
//	                  |
//	                  +----far---- z
const bystander = `network: bystander
tenant: root
nodes: [{name: x, host: h1}, {name: y, host: h1}, {name: z, host: h3}]
links:
  - {name: near, ends: [x, y], rate: 20Mbit}
  - {name: far, ends: [x, z], min: 10Mbit, max: 20Mbit}
`

// repairTime is the promise: two audits and what they take.
const repairTime = 5 * time.Second

// damage is done where: HOST, FABRIC, or a node's name. Words after a ";" are
// one more command.
var damages = []struct{ where, command string }{
	{"a", "ip link del eth0"},
	{"a", "ip link set eth0 mtu 9000"},
	{"a", "ip addr flush dev eth0"},
	{"a", "ip link set eth0 down; ip link set eth0 name gone"},
	{"a", "ip link set eth0 netns HOST"},
	{"FABRIC", "ip link del l0a"},
	{"FABRIC", "ip link set l0b down"},
	{"FABRIC", "ip link set l0a mtu 9000"},
	{"FABRIC", "ip link set l0a alias stranger"},
	{"FABRIC", "ip link set l0a down; ip link set l0a name gone"},
	{"FABRIC", "tc qdisc del dev l0a root"},
	{"FABRIC", "tc qdisc change dev l0a root tbf rate 1mbit burst 10k limit 20k"},
	{"FABRIC", "tc qdisc del dev l0b clsact"},
	{"FABRIC", "tc filter del dev l0a ingress"},
	{"FABRIC", "tc filter add dev l0a ingress prio 5 u32 match u32 0 0"},
	{"FABRIC", "ip link del trunk"},
	{"FABRIC", "ip link set trunk down"},
	{"FABRIC", "ip link set trunk down; ip link set trunk name gone"},
	{"FABRIC", "ip link set trunk alias stranger"},
	{"HOST", "ip link del slopen"},
	{"HOST", "ip link set slopen down"},
	{"HOST", "ip link del TRUNK"},
	{"HOST", "ip link set TRUNK down"},
	{"HOST", "ip link set TRUNK alias stranger"},
	{"HOST", "tc filter del dev TRUNK ingress"},
	{"HOST", "tc qdisc del dev TRUNK clsact"},
	{"HOST", "tc qdisc del dev to-h2 root"},
	{"HOST", "tc qdisc replace dev to-h2 root pfifo; tc qdisc del dev to-h2 root"},
	{"HOST", "tc class change dev to-h2 parent 1:2 classid 1:10 htb rate 1mbit ceil 2mbit"},
	{"HOST", "tc class change dev to-h2 parent 1:1 classid 1:2 htb rate 1mbit"},
	{"HOST", "tc class change dev to-h2 parent 1:2 classid 1:10 htb rate 10555552bit ceil 105555552bit burst 2k cburst 2k"},
	{"HOST", "tc qdisc change dev to-h2 parent 1:10 bfifo limit 3k"},
	{"HOST", "tc class del dev to-h2 classid 1:10"},
	{"HOST", "tc qdisc del dev to-h2 parent 1:10"},
	{"HOST", "tc qdisc del dev to-h2 parent 1:4"},
	{"r", "ip route flush proto 155"},
	{"r", "ip route add 10.0.0.99/32 dev eth0 proto 155"},
	{"a", "ip route flush table main"},
}

// What a network is made of is taken away or altered behind Sublet's back, one
// thing after the other. All of it comes back, soon, and nobody else loses a
// packet meanwhile.
func TestSabotage(t *testing.T) {
	s := newSupervisor(t, "triangle")
	s.up(bystander)
	request := parseRequest(t, crashNetwork)
	id := idOf(request)
	s.admit(request)
	s.ready(id)
	s.settled()
	d := &damaged{supervisor: s, a: node{"h1", id, "a"}, built: s.built("h1"), c: s.addressOf("h1", id, "c")}
	other := idOf(parseRequest(t, bystander))
	x, y, z := node{"h1", other, "x"}, node{"h1", other, "y"}, node{"h3", other, "z"}
	flows := []*flow{s.flow(x, y), s.flow(y, x), s.flow(x, z), s.flow(z, x)}
	places := map[string]string{
		"HOST": s.hostNamespace("h1"), "FABRIC": filepath.Join(s.run, "netns", "h1", "root.crash"),
		"a": s.namespaceOf(node{"h1", id, "a"}), "r": s.namespaceOf(node{"h1", id, "r"}),
	}
	host := filepath.Base(places["HOST"])
	for _, damage := range damages {
		d.repaired(damage.where+": "+damage.command, func() {
			words := strings.NewReplacer("HOST", host, "TRUNK", plan.Trunk(id))
			for command := range strings.SplitSeq(words.Replace(damage.command), "; ") {
				s.in(places[damage.where], strings.Fields(command)...)
			}
		})
	}
	for what, do := range d.files(places) {
		d.repaired(what, do)
	}
	t.Logf("%d damages, the longest took %s: %s", d.count, d.longest.Round(time.Millisecond), d.worst)
	d.tenants(places["r"])
	endLossless(flows...)
}

// tenants is what a tenant turns off inside their router: that stays, for the
// agent does not take it for damage.
func (d *damaged) tenants(router string) {
	off, on := []string{"sysctl", "-q", "-w", "net.ipv4.ip_forward=0"}, []string{"sysctl", "-q", "-w", "net.ipv4.ip_forward=1"}
	d.in(router, off...)
	for range 3 { // audits, with time to act
		time.Sleep(time.Second)
		var steps []string
		if err := d.api.Diff(d.t.Context(), "h1", &steps); err != nil || len(steps) > 0 {
			d.t.Errorf("a tenant's ip_forward=0 is taken for damage: %v %v", steps, err)
		}
	}
	d.in(router, "sh", "-c", "test $(sysctl -n net.ipv4.ip_forward) = 0")
	d.in(router, on...)
}

// damaged is a network that damage is done to.
type damaged struct {
	*supervisor
	a     node
	c     string // address
	built []string

	count   int
	longest time.Duration
	worst   string
}

// files are damages other than by commands.
func (d *damaged) files(places map[string]string) map[string]func() {
	unmount := func(path string) func() {
		return func() {
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				d.t.Error(err)
			}
		}
	}
	remove := func(path string) func() {
		return func() {
			_ = unix.Unmount(path, unix.MNT_DETACH) // if it is a namespace
			if err := os.Remove(path); err != nil {
				d.t.Error(err)
			}
		}
	}
	names := filepath.Join(d.run, "hosts", "h1", "root.crash")
	return map[string]func(){
		"namespace of a node unmounted":     unmount(places["a"]),
		"namespace of a router removed":     remove(places["r"]),
		"namespace of the fabric unmounted": unmount(places["FABRIC"]),
		"namespace of the fabric removed":   remove(places["FABRIC"]),
		"what encapsulates unpinned":        remove(filepath.Join(d.run, "bpf", "h1", "overlay", "tx_"+plan.Trunk(d.a.id))),
		"programs and maps unpinned": func() {
			for _, pin := range matches(filepath.Join(d.run, "bpf", "h1", "vxlink", "[a-s]*")) {
				if err := os.Remove(pin); err != nil {
					d.t.Error(err)
				}
			}
		},
		"hosts file removed": remove(names),
		"hosts file altered": func() {
			if err := os.WriteFile(names, []byte("10.9.9.9 evil\n"), 0o644); err != nil {
				d.t.Error(err)
			}
		},
		"control groups removed": func() {
			for _, mount := range matches("/sys/fs/cgroup", "/sys/fs/cgroup/*") {
				_ = unix.Rmdir(filepath.Join(mount, product.Cgroup(d.run), "h1", "root.crash.a"))
			}
		},
		"limits lifted": func() {
			for name, value := range map[string]string{
				"cpu.cfs_quota_us": "-1", "memory.memsw.limit_in_bytes": "-1", "memory.limit_in_bytes": "-1", "cpu.max": "max", "memory.max": "max",
			} {
				for _, file := range matches("/sys/fs/cgroup/*/"+product.Cgroup(d.run)+"/h1/root.crash.a/"+name, "/sys/fs/cgroup/"+product.Cgroup(d.run)+"/h1/root.crash.a/"+name) {
					_ = os.WriteFile(file, []byte(value), 0)
				}
			}
		},
	}
}

// repaired does damage and waits until nothing is to be seen of it.
func (d *damaged) repaired(what string, damage func()) {
	d.t.Helper()
	damage()
	began := time.Now()
	stall.Wait(d.t, repairTime, 10*time.Millisecond, func() error {
		if err := d.whole(); err != nil {
			return fmt.Errorf("%s: not repaired: %w", what, err)
		}
		return nil
	})
	d.count++
	if took := time.Since(began); took > d.longest {
		d.longest, d.worst = took, what
	}
}

func (d *damaged) whole() error {
	if _, err := os.Stat(d.namespaceOf(d.a)); err != nil {
		return err
	}
	if diff := difference(d.built, d.lab.built("h1")); diff != "" {
		return errors.New(diff)
	}
	var steps []string
	if err := d.api.Diff(d.t.Context(), "h1", &steps); err != nil || len(steps) > 0 {
		return errors.Join(err, errors.New(strings.Join(steps, "; ")))
	}
	if out, err := d.nodeCommand("h1", d.a.id, "a", "ping", "-c", "1", "-W", "1", d.c).CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	return nil
}
