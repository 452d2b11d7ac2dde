package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// site makes a host's end of a table's pair, whose other end is in a namespace of its
// own with an address.
func (l *lab) site(i int) string {
	l.t.Helper()
	path := l.namespace(filepath.Join(l.run, fmt.Sprintf("site%d", i)))
	l.ip(l.hosts[i].Namespace, "link", "add", "front", "type", "veth", "peer", "name", "eth0", "netns", path)
	l.ip(l.hosts[i].Namespace, "link", "set", "front", "up")
	l.ip(path, "link", "set", "eth0", "address", mac(i), "mtu", "1450", "up")
	l.ip(path, "addr", "add", inner(i)+"/24", "dev", "eth0")
	l.ip(path, "neigh", "replace", inner(1-i), "lladdr", mac(1-i), "dev", "eth0", "nud", "permanent")
	return path
}

// own is a table of host i by MAC addresses, with n entries, the last of which leads to
// the other site.
func own(i, n int) plan.TunnelTable {
	t := plan.TunnelTable{TableHead: plan.TableHead{Device: "front", Encapsulation: vnet.VXLAN, Number: 5000, Interface: wire, Local: under4(i), Bits: 48}}
	for at := range n - 1 {
		t.Entries = append(t.Entries, plan.TunnelEntry{ID: id(fmt.Sprintf("02:99:00:00:%02x:%02x", at>>8, at&255)), To: under4(9)})
	}
	t.Entries = append(t.Entries, plan.TunnelEntry{ID: id(mac(1 - i)), To: under4(1 - i)})
	return t
}

func id(text string) (i plan.Identifier) {
	if err := i.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return i
}

func (l *lab) own(i int, t plan.TunnelTable) error {
	return l.hosts[i].part.ChangeTable(plan.TableChange{Table: "sites", Do: plan.TableSet, Set: &t})
}

func (l *lab) tables(i int) []report.TableState {
	l.t.Helper()
	all, err := l.hosts[i].part.Tables()
	check1(l.t, err)
	return all
}

// pings wants all answers.
func (l *lab) pings(namespace, to string, n int) {
	l.t.Helper()
	out, err := l.try(namespace, "ping", "-q", "-n", "-c", fmt.Sprint(n), "-i", "0.002", "-W", "2", to)
	if err != nil || !strings.Contains(out, " 0% packet loss") {
		l.t.Fatalf("%s: %v\n%s\n%+v", to, err, out, l.tables(0)[0].Reason)
	}
}

// A thousand identifiers, beside a lease: changes are all or nothing and lose no packet,
// an agent takes over its predecessor's, and nothing is left.
func TestTablesOfTheOperator(t *testing.T) {
	l := newLab(t)
	for _, h := range l.hosts {
		h.part.TablesFile = filepath.Join(l.run, h.Config.Host, "tables.json")
	}
	sites := []string{l.site(0), l.site(1)}
	l.tunnel("", under4)
	for i := range l.hosts {
		check1(t, l.own(i, own(i, 1000)))
	}
	l.pings(sites[0], inner(1), 5)
	l.ping(inner(1)) // the lease's
	have := l.tables(0)[0]
	last := have.Entries[999]
	if len(have.Entries) != 1000 || last.Hits != 5 || have.Received != 5 || have.Entries[0].Hits != 0 || last.State != report.TunnelValid {
		t.Fatalf("%d entries, the last one %+v, %d received", len(have.Entries), last, have.Received)
	}

	change := func(c plan.TableChange) error { c.Table = "sites"; return l.hosts[0].part.ChangeTable(c) }
	for what, c := range map[string]plan.TableChange{
		"one that is there": {Do: plan.TableAdd, Entries: []plan.TunnelEntry{{ID: id("02:98:00:00:00:00"), To: under4(9)}, {ID: id("02:99:00:00:00:00"), To: under4(9)}}},
		"one that is not":   {Do: plan.TableDelete, IDs: []plan.Identifier{id("02:99:00:00:00:00"), id("02:98:00:00:00:00")}},
	} {
		if err := change(c); !errors.Is(err, plan.ErrTableConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, bad := range map[string]func(*plan.TunnelTable){
		"a lease's number": func(t *plan.TunnelTable) { t.Number = number },
		"no such device":   func(t *plan.TunnelTable) { t.Device = "nowhere" },
		"the wire":         func(t *plan.TunnelTable) { t.Device, t.Interface = wire, "front" },
		"short":            func(t *plan.TunnelTable) { t.Bits = 32 },
		"another's":        func(t *plan.TunnelTable) { t.Local = under4(7) },
		"twice":            func(t *plan.TunnelTable) { t.Entries = append(t.Entries, t.Entries[0]) },
	} {
		wrong := own(0, 10)
		bad(&wrong)
		if err := l.own(0, wrong); !errors.As(err, new(plan.BadTable)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := l.tables(0)[0]; len(now.Entries) != 1000 {
		t.Errorf("%d entries after refusals", len(now.Entries))
	}

	done := make(chan error, 1)
	go func() {
		var err error
		for n := range 20 {
			err = errors.Join(err, change(plan.TableChange{Do: plan.TableReplace, Entries: own(0, 900+n).Entries}))
		}
		more := []plan.TunnelEntry{{ID: id("02:98:00:00:00:00"), To: under4(9)}}
		err = errors.Join(err, change(plan.TableChange{Do: plan.TableAdd, Entries: more}), change(plan.TableChange{Do: plan.TableDelete, IDs: []plan.Identifier{more[0].ID}}))
		done <- err
	}()
	l.pings(sites[0], inner(1), 500)
	check1(t, <-done)
	if now := l.tables(0)[0]; len(now.Entries) != 919 || now.Entries[918].Hits != 505 {
		t.Errorf("%d entries, the last one %+v", len(now.Entries), now.Entries[len(now.Entries)-1])
	}

	h := l.hosts[0]
	h.part.Close()
	l.pings(sites[0], inner(1), 5) // nobody is there
	next := New(h.Host)
	next.TablesFile = h.part.TablesFile
	h.part = next
	t.Cleanup(next.Close)
	check1(t, next.Observe(context.Background(), new(plan.Host)))
	l.pings(sites[0], inner(1), 5)
	if now := l.tables(0)[0]; len(now.Entries) != 919 || now.Entries[918].Hits != 515 {
		t.Errorf("taken over: %d entries, the last one %+v", len(now.Entries), now.Entries[len(now.Entries)-1])
	}
	var fronts int
	check1(t, eachName(next.table.objects.Names, func(overlayName) { fronts++ }))
	if fronts != 919 {
		t.Errorf("%d names in the kernel", fronts)
	}

	l.ip(h.Namespace, "link", "set", "front", "down")
	eventually(t, func() bool { return l.tables(0)[0].State == report.TunnelUnresolved })
	l.ip(h.Namespace, "link", "set", "front", "up")
	eventually(t, func() bool { return l.tables(0)[0].State == report.TunnelValid })
	l.pings(sites[0], inner(1), 5)

	for i, h := range l.hosts {
		check1(t, h.part.ChangeTable(plan.TableChange{Table: "sites", Do: plan.TableRemove}))
		l.ping(inner(1))
		check1(t, h.part.Do(context.Background(), plan.Step{Op: plan.Delete, Item: item(i, "", under4)}))
		for _, left := range []string{h.part.TablesFile, h.Dir("bpf") + "/overlay"} {
			if _, err := os.Stat(left); err == nil {
				t.Errorf("%s is left", left)
			}
		}
		if i == 0 {
			l.tunnelAgain(i)
		}
	}
}

// tunnelAgain makes the lease's end anew that was removed.
func (l *lab) tunnelAgain(i int) {
	l.t.Helper()
	check1(l.t, l.hosts[i].part.Do(context.Background(), plan.Step{Op: plan.Add, Item: item(i, "", under4)}))
}

// IP packets by the longest prefix of where they go, in every protocol, from the host's
// own stack: without a lease, and without a trace.
func TestTablesByLongestPrefix(t *testing.T) {
	l := newLab(t)
	for i, h := range l.hosts {
		l.ip(h.Namespace, "link", "add", "front", "type", "veth", "peer", "name", "inside")
		l.ip(h.Namespace, "link", "set", "front", "up")
		l.ip(h.Namespace, "link", "set", "inside", "mtu", "1400", "up")
		l.ip(h.Namespace, "addr", "add", fmt.Sprintf("10.1.%d.1/32", i), "dev", "inside")
		l.ip(h.Namespace, "route", "add", "10.1.0.0/16", "dev", "inside", "src", fmt.Sprintf("10.1.%d.1", i))
		for _, to := range []string{"10.1.0.1", "10.1.1.1", "10.1.9.1"} {
			if to != fmt.Sprintf("10.1.%d.1", i) {
				l.ip(h.Namespace, "neigh", "replace", to, "lladdr", "02:00:00:00:09:09", "dev", "inside", "nud", "permanent")
			}
		}
	}
	for _, protocol := range []vnet.Encapsulation{vnet.LISP, vnet.IPIP, vnet.GRE, vnet.GUE} {
		t.Run(string(protocol), func(t *testing.T) {
			for i := range l.hosts {
				table := plan.TunnelTable{TableHead: plan.TableHead{Device: "front", Encapsulation: protocol, Interface: wire, Local: under4(i), Offset: 30, Bits: 32, Longest: true}, Entries: []plan.TunnelEntry{
					{ID: id("default"), To: under4(8)}, {ID: id("10.1.0.0/16"), To: under4(9)}, {ID: id(fmt.Sprintf("10.1.%d.0/24", 1-i)), To: under4(1 - i)},
				}}
				if plan.Numbered(protocol) {
					table.Number = 77
				}
				check1(t, l.own(i, table))
			}
			l.pings(l.hosts[0].Namespace, "10.1.1.1", 5)
			_, _ = l.try(l.hosts[0].Namespace, "ping", "-q", "-c", "1", "-W", "0.2", "10.1.9.1")
			for _, e := range l.tables(0)[0].Entries {
				if want := map[string]string{"0a0101/24": "5 map[]", "0a01/16": "0 map[unresolved:1]"}[e.ID.String()]; want != "" && fmt.Sprint(e.Hits, e.Drops) != want {
					t.Errorf("%s: %d hits, drops %v, want %s", e.ID, e.Hits, e.Drops, want)
				}
			}
			for _, h := range l.hosts {
				check1(t, h.part.ChangeTable(plan.TableChange{Table: "sites", Do: plan.TableRemove}))
			}
		})
	}
	for _, h := range l.hosts {
		if _, err := os.Stat(h.Dir("bpf") + "/overlay"); err == nil {
			t.Error("pins are left")
		}
	}
}

func TestIdentifiers(t *testing.T) {
	for text, want := range map[string]string{
		"02:00:00:00:00:01": "020000000001/48", "10.1.0.0/16": "0a01/16", "fd00::/8": "fd/8", "12345": "123450/20", "0x12345/20": "123450/20",
		"default": "/0", "0/0": "/0", "80/1": "80/1",
	} {
		var i plan.Identifier
		if err := i.UnmarshalText([]byte(text)); err != nil || i.String() != want {
			t.Errorf("%s is %s, %v, want %s", text, i, err, want)
		}
		var again plan.Identifier
		if err := again.UnmarshalText([]byte(i.String())); err != nil || again != i {
			t.Errorf("%s is read as %s, %v", i, again, err)
		}
	}
	for _, text := range []string{"", "x", "10.1.0.1/16", "12/9", "1/x", strings.Repeat("0", 33), "fe80::1%eth0"} {
		if err := new(plan.Identifier).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q passes", text)
		}
	}
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}
