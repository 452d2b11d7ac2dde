package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"sublet/report"
)

// TestTunnelTables: the operator's own tunnels, a thousand identifiers, by command; what
// a lease has beside them stays.
func TestTunnelTables(t *testing.T) {
	l := newLab(t, "demo")
	l.up("network: n\nnodes: [{name: a, host: h1}, {name: b, host: h2}]\nlinks: [{ends: [a, b], rate: 20Mbit}]\n")
	locals := map[string]string{}
	for _, s := range decode[[]report.TunnelState](t, l.must("overlay", "-o", "json")) {
		locals[string(s.Host)] = s.Local.String()
	}
	sites := []string{l.site("h1", 1), l.site("h2", 2)}
	many := ""
	for n := range 999 {
		many += fmt.Sprintf("02:99:00:00:%02x:%02x %s # another\n", n>>8, n&255, locals["h2"])
	}
	l.must("overlay", "set", "h1", "sites", "--device", "front", "--encapsulation", "geneve", "--number", "5000",
		"--interface", "to-h2", "--local", locals["h1"], "--entries", l.file("many.txt", many+"02:00:00:00:00:02 "+locals["h2"]+"\n"))
	l.must("overlay", "set", "h2", "sites", "--device", "front", "--encapsulation", "geneve", "--number", "5000", "--interface", "to-h1", "--local", locals["h2"])
	l.must("overlay", "add", "h2", "sites", l.file("one.txt", "020000000001 "+locals["h1"]+"\n"))
	ping := func(n int) {
		t.Helper()
		out, err := exec.Command("nsenter", "--net="+sites[0], "ping", "-q", "-n", "-c", fmt.Sprint(n), "-i", "0.01", "-W", "5", "10.77.0.2").CombinedOutput()
		if err != nil || !strings.Contains(string(out), " 0% packet loss") {
			t.Fatalf("%v\n%s\n%s", err, out, l.must("overlay", "show", "h1"))
		}
	}
	ping(10)
	state := decode[[]report.TableState](t, l.must("overlay", "show", "h1", "sites", "-o", "json"))[0]
	if last := state.Entries[999]; len(state.Entries) != 1000 || last.Hits != 10 || state.Received != 10 {
		t.Errorf("%d entries, the last one %+v, %d received", len(state.Entries), last, state.Received)
	}

	for _, c := range []struct {
		code int
		word string
		args []string
	}{
		{5, "goes to", []string{"add", "h1", "sites", l.file("twice.txt", "02:98:00:00:00:00 "+locals["h2"]+"\n02:99:00:00:00:01 "+locals["h2"]+"\n")}},
		{5, "no entry", []string{"delete", "h1", "sites", l.file("gone.txt", "02:99:00:00:00:01\n02:98:00:00:00:00\n")}},
		{2, "bad.txt:2", []string{"replace", "h1", "sites", l.file("bad.txt", "02:99:00:00:00:01 "+locals["h2"]+"\nnothing "+locals["h2"]+"\n")}},
		{2, "no such table", []string{"delete", "h1", "others"}},
		{5, "of table sites", []string{"set", "h1", "wire", "--device", "to-h2", "--number", "5001", "--interface", "front", "--local", locals["h1"]}},
		{2, "1048575", []string{"set", "h1", "sites", "--device", "front", "--number", "1048576", "--interface", "to-h2", "--local", locals["h1"]}},
	} {
		r := l.sublet(append([]string{"overlay"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.word) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: %d %s", c.args, r.code, r.err)
		}
	}
	if now := decode[[]report.TableState](t, l.must("overlay", "show", "h1", "-o", "json")); len(now) != 1 || len(now[0].Entries) != 1000 {
		t.Errorf("refusals changed it: %d tables", len(now))
	}
	l.must("overlay", "replace", "h1", "sites", l.file("one.txt", "02:00:00:00:00:02 "+locals["h2"]+"\n"))
	ping(10)
	l.must("exec", "n/a", "--", "ping", "-q", "-c", "3", "-i", "0.1", "-W", "5", "b")
	l.must("overlay", "delete", "h1", "sites")
	l.must("overlay", "delete", "h2", "sites")
	if out := l.must("overlay", "show", "h1"); !strings.Contains(out, "no tables") {
		t.Errorf("left: %s", out)
	}
	l.must("exec", "n/a", "--", "ping", "-q", "-c", "3", "-i", "0.1", "-W", "5", "b")
	l.must("down", "n")
}

// site makes a pair of devices at a host, whose end that is not the table's is in a
// namespace of its own, and returns that namespace's file.
func (l *lab) site(host string, n int) string {
	l.t.Helper()
	name := fmt.Sprintf("%s-site%d", labName(l.run), n)
	command := func(argv ...string) {
		l.t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			l.t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	command("ip", "netns", "add", name)
	l.t.Cleanup(func() { command("ip", "netns", "del", name) })
	inHost := []string{"nsenter", "--net=" + l.host(host), "ip"}
	command(append(inHost, "link", "add", "front", "type", "veth", "peer", "name", "eth0", "netns", "/run/netns/"+name)...)
	command(append(inHost, "link", "set", "front", "up")...)
	inSite := []string{"ip", "-n", name}
	command(append(inSite, "link", "set", "eth0", "address", fmt.Sprintf("02:00:00:00:00:%02x", n), "mtu", "1400", "up")...)
	command(append(inSite, "addr", "add", fmt.Sprintf("10.77.0.%d/24", n), "dev", "eth0")...)
	command(append(inSite, "neigh", "replace", fmt.Sprintf("10.77.0.%d", 3-n), "lladdr", fmt.Sprintf("02:00:00:00:00:%02x", 3-n), "dev", "eth0", "nud", "permanent")...)
	return "/run/netns/" + name
}
