package iplbd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
)

const isisNames = `vrf     : default
Level  System ID      Dynamic Hostname
2      0000.0000.0002 s.2
     * 0000.0000.0001 s1
`

const isisText = `Area f:
IS-IS Level-2 link-state database:
LSP ID                  PduLen  SeqNumber   Chksum  Holdtime  ATT/P/OL
s1.00-00             *     92   0x00000003  0x53c4    1141    0/0/0
  Hostname: s1
  TE Router ID: 10.8.0.1
  Extended Reachability: 0000.0000.0002.00 (Metric: 10)
    Local Interface IP Address(es): 10.9.0.0
    Remote Interface IP Address(es): 10.9.0.1
  Extended Reachability: 0000.0000.0003.00 (Metric: 30)
  Extended Reachability: 0000.0000.0002.01 (Metric: 7)
  IPv4 Interface Address: 10.8.0.1
  Extended IP Reachability: 10.8.0.1/32 (Metric: 10)

s.2.00-00                  92   0x00000003  0xcc46    1168    0/0/1
  Extended Reachability: 0000.0000.0001.00 (Metric: 10)
  IPv4 Interface Address: 10.8.0.2
s.2.00-01                  92   0x00000003  0xcc46    1168    0/0/0
  Extended IP Reachability: 10.8.0.2/32 (Metric: 10)

s.2.01-00                  40   0x00000001  0xcc46    1168    0/0/0
  Extended Reachability: 0000.0000.0001.00 (Metric: 0)

0000.0000.0003.00-00       92   0x00000003  0xcc46    (12)    0/0/0
  TE Router ID: 10.8.0.3

    4 LSPs
`

// What isisd prints becomes routers by their addresses: fragments are joined, networks of
// many and LSPs that are being flushed are left out, and overloaded systems are far away.
func TestISISIsRead(t *testing.T) {
	db, err := parseISIS([]byte(isisNames), []byte(isisText))
	if err != nil {
		t.Fatal(err)
	}
	one, two := netip.MustParseAddr("10.8.0.1"), netip.MustParseAddr("10.8.0.2")
	want := map[netip.Addr]Router{
		one: {ID: one, Links: []RouterLink{{two, netip.MustParseAddr("10.9.0.0"), 10}}, Stubs: []netip.Prefix{netip.MustParsePrefix("10.8.0.1/32")}},
		two: {ID: two, Links: []RouterLink{{one, netip.Addr{}, maxCost}}, Stubs: []netip.Prefix{netip.MustParsePrefix("10.8.0.2/32")}},
	}
	if db.Self != one || !sameRouters(db.Routers, want) {
		t.Errorf("%+v", db)
	}
	if _, err := parseISIS(nil, []byte("nothing")); err == nil {
		t.Error("nothing is a fabric")
	}
	const line = "s1.00-00 * 92 0x00000003 0x53c4 %s 0/0/0"
	if string(withoutHoldtimes(fmt.Appendf(nil, line, "1141"))) != string(withoutHoldtimes(fmt.Appendf(nil, line, "(3)"))) {
		t.Error("a summary differs by its holdtime")
	}
}

// Paths follow the link state of isisd: two from a switch to the one across, and one when
// a link is gone.
//
//	s1 - s2
//	 |    |
//	s3 - s4
func TestPathsFromISIS(t *testing.T) {
	const isisd, zebra = "/usr/lib/frr/isisd", "/usr/lib/frr/zebra"
	if _, err := os.Stat(isisd); err != nil || os.Geteuid() != 0 {
		t.Skip("it takes root and isisd of FRR")
	}
	d := &diamond{t, make(map[string]*os.File)}
	wires := [][2]string{{"s1", "s2"}, {"s1", "s3"}, {"s2", "s4"}, {"s3", "s4"}}
	for i := range 4 {
		name := fmt.Sprintf("s%d", i+1)
		ns, err := kernel.NewNamespace(func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		d.ns[name] = ns
		d.run(name, "ip link set lo up")
		d.run(name, fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", i+1))
	}
	interfaces := make(map[string]string)
	for i, w := range wires {
		d.wire(i+1, w[0], w[1])
		for _, end := range w {
			interfaces[end] += fmt.Sprintf("interface w%d\n ip router isis f\n isis network point-to-point\n isis hello-interval 1\n isis hello-multiplier 3\n", i+1)
		}
	}
	dirs := make(map[string]string)
	for name := range d.ns {
		dirs[name] = speaksISIS(d, name, interfaces[name], zebra, isisd)
	}
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan []plan.Spread, 64)
	var done sync.WaitGroup
	done.Go(func() {
		ISIS{Dir: dirs["s1"], Choice: Choice{Paths: 4}, Log: slog.New(slog.DiscardHandler)}.Run(ctx, func(s []plan.Spread) { told <- s })
	})
	defer func() { cancel(); done.Wait() }()
	const across = "10.255.0.4"
	if relays := pathsTo(t, told, across, 2); relays != "10.255.0.2 10.255.0.3" {
		t.Errorf("two paths by %s", relays)
	}
	d.run("s1", "ip link set w1 down")
	if relays := pathsTo(t, told, across, 1); relays != "" && relays != "10.255.0.3" {
		t.Errorf("one path by %s", relays)
	}
}

// speaksISIS starts zebra and isisd in a namespace; the directory of their sockets.
func speaksISIS(d *diamond, name, interfaces string, programs ...string) string {
	d.t.Helper()
	dir, err := os.MkdirTemp("/run", "isis")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	text := fmt.Sprintf("hostname %[1]s\nrouter isis f\n is-type level-2-only\n lsp-gen-interval 1\n spf-interval 1\n net 49.0001.0000.0000.000%[2]s.00\ninterface lo\n ip router isis f\n isis passive\n%[3]s", name, name[1:], interfaces)
	config := filepath.Join(dir, "isisd.conf")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { os.RemoveAll(dir) })
	for i, program := range programs {
		pid := filepath.Join(dir, fmt.Sprint(i, ".pid"))
		argv := []string{program, "-d", "-i", pid, "-z", filepath.Join(dir, "zserv.api"), "--vty_socket", dir, "-f", config}
		if i == 0 {
			argv[len(argv)-1] = "/dev/null"
		}
		if err := kernel.In(d.ns[name], func() error { return exec.Command(argv[0], argv[1:]...).Run() }); err != nil {
			d.t.Fatalf("start %s: %v", program, err)
		}
		d.t.Cleanup(func() { ended(pid) })
	}
	return dir
}

// ended ends a daemon by the file that has its number.
func ended(file string) {
	text, _ := os.ReadFile(file)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// pathsTo waits for so many paths to a switch; by which relays they go, in order.
func pathsTo(t *testing.T, told chan []plan.Spread, prefix string, paths int) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case all := <-told:
			for _, s := range all {
				if s.Prefix.Addr().String() != prefix || len(s.Paths) != paths {
					continue
				}
				var relays []string
				for _, p := range s.Paths {
					for _, r := range p.Relays {
						relays = append(relays, r.String())
					}
				}
				return strings.Join(relays, " ")
			}
		case <-timeout:
			t.Fatalf("no %d paths to %s are told", paths, prefix)
		}
	}
}
