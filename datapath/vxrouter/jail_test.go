package vxrouter

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// Daemons find no file of the host but programs, write what is bounded, and
// nothing of that is left when they end.
func TestDaemonsAreJailed(t *testing.T) {
	b := newBench(t)
	if _, err := os.Stat(kernel.FRR("ospfd")); err != nil {
		b.Skip("FRR is not installed")
	}
	b.node("r")
	r := router("r")
	r.Forward, r.OSPF = true, &plan.OSPF{RouterID: netip.MustParseAddr("10.0.0.1"), Interfaces: []string{"eth0"}}
	b.do(plan.Add, r)
	b.has(r)
	for _, d := range kernel.FRRDaemons {
		process := fmt.Sprintf("/proc/%d/", b.daemon(r.Key(), d)[0])
		for _, hidden := range []string{"home", "root", "tmp", "sys", "etc/shadow", "etc/sublet", "var/lib", b.host.Run} {
			if _, err := os.Lstat(filepath.Join(process, "root", hidden)); err == nil {
				t.Errorf("%s sees /%s", d, hidden)
			}
		}
		if got, want := writable(b, process), []string{"/proc/sys/net", kernel.FRRRun, "/var/tmp"}; !slices.Equal(got, want) {
			t.Errorf("%s can write %q, want %q", d, got, want)
		}
	}
	var fs unix.Statfs_t
	b.check(unix.Statfs(b.part.ownDir(r.Key()), &fs))
	if size := fs.Bsize * int64(fs.Blocks); fs.Type != unix.TMPFS_MAGIC || size != ownSize {
		t.Errorf("what daemons write is of type %x, %d bytes", fs.Type, size)
	}
	first := b.daemon(r.Key(), "zebra")
	b.check(kernel.Unbind(b.part.ownDir(r.Key()))) // somebody unmounts it
	b.do(plan.Set, r)
	b.has(r)
	if now := b.daemon(r.Key(), "zebra"); slices.Equal(now, first) || !b.part.hasOwn(r.Key()) {
		t.Errorf("zebra, whose directory was unmounted, was %v and is %v", first, now)
	}
	b.do(plan.Delete, r)
	mounts, err := kernel.Mounts(kernel.OwnMounts)
	b.check(err)
	for _, m := range mounts {
		if m.Within(b.host.Dir(ownKind)) {
			t.Errorf("%s is still mounted", m.Point)
		}
	}
	if left, _ := os.ReadDir(b.host.Dir(ownKind)); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// writable are the mounts that a process could write.
func writable(b *bench, process string) (points []string) {
	text, err := os.ReadFile(process + "mountinfo")
	b.check(err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); slices.Contains(strings.Split(f[5], ","), "rw") {
			points = append(points, f[4])
		}
	}
	slices.Sort(points)
	return points
}

// What FRR reads without complaint and a daemon refuses restarts daemons once,
// and again only after a while; another wish is done at once.
func TestRefusedConfigurationWaits(t *testing.T) {
	b := newBench(t)
	if _, err := os.Stat(kernel.FRR("bgpd")); err != nil {
		b.Skip("FRR is not installed")
	}
	b.node("r")
	r := router("r")
	r.Forward = true
	wish := func(config string) error {
		r.FRR = &plan.FRR{Daemons: []plan.Daemon{{Name: "zebra"}, {Name: "bgpd"}}, Config: config}
		return b.part.Do(t.Context(), plan.Step{Op: plan.Set, Item: r})
	}
	const refused = "router bgp 65001\nexit\nrouter bgp 65002\n"
	if err := wish(refused); err == nil || !strings.Contains(err.Error(), "does not take") {
		t.Fatalf("two systems: %v", err)
	}
	first := b.daemon(r.Key(), "zebra")
	if err := wish(refused); err == nil || !strings.Contains(err.Error(), "told again in") {
		t.Errorf("the second time: %v", err)
	}
	if now := b.daemon(r.Key(), "zebra"); !slices.Equal(now, first) {
		t.Errorf("zebra was %v and is now %v", first, now)
	}
	b.check(wish("router bgp 65001\n"))
	b.has(r)
	running, taken := b.daemon(r.Key(), "zebra"), r
	if err := wish("no such statement\n"); err == nil || !strings.Contains(err.Error(), "does not understand") {
		t.Errorf("what is no statement: %v", err)
	}
	b.has(taken)
	if now := b.daemon(r.Key(), "zebra"); !slices.Equal(now, running) {
		t.Errorf("zebra was %v and is %v although FRR did not understand", running, now)
	}
	b.do(plan.Delete, r)
}

// Each refusal doubles the pause, up to a bound; another wish does not wait.
func TestPausesOfRefusals(t *testing.T) {
	p := &Part{refused: make(map[string]refusal)}
	want, other := daemons{FRR: &plan.FRR{Config: "a"}}, daemons{FRR: &plan.FRR{Config: "b"}}
	for pause := firstPause; pause < 4*longestPause; pause *= 2 {
		_ = p.refuse("r", want, os.ErrInvalid)
		if got := p.refused["r"].pause; got != min(pause, longestPause) {
			t.Errorf("a pause of %v, want %v", got, pause)
		}
	}
	if p.refusal("r", want) == nil || p.refusal("r", other) != nil || p.refusal("s", want) != nil {
		t.Error("another wish waits, or the same does not")
	}
	p.accept("r")
	if err := p.refusal("r", want); err != nil {
		t.Errorf("after acceptance: %v", err)
	}
}
