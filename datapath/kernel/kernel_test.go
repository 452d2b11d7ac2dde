package kernel

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
}

// inside runs f with a connection in a fresh namespace.
func inside(t *testing.T, f func(c *Conn)) {
	t.Helper()
	needRoot(t)
	ns, err := NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	c, err := DialIn(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f(c)
}

// made makes a device for a test.
func made(t *testing.T, c *Conn, name string) Link {
	t.Helper()
	if err := c.Do(NewLink(name, "veth", nil)); err != nil {
		t.Fatal(err)
	}
	l, err := c.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNamespaceFile(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "a", "b")
	ns, err := NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for range 2 {
		if err := Bind(ns, path); err != nil {
			t.Fatal(err)
		}
	}
	f, err := OpenNamespace(path)
	if err != nil || !SameFile(ns, path) {
		t.Fatalf("reopen: %v", err)
	}
	f.Close()
	for range 2 {
		if err := Unbind(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNamespace(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plain file is a namespace: %v", err)
	}
	if err := Unbind(path); err != nil {
		t.Error(err)
	}
}

func TestThreadComesHome(t *testing.T) {
	needRoot(t)
	home, _ := Current()
	defer home.Close()
	ns, err := NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for range 20 {
		if err := In(ns, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if !SameFile(home, "/proc/thread-self/ns/net") {
			t.Fatal("the thread stayed in the other namespace")
		}
	}
}

func TestLinks(t *testing.T) {
	inside(t, func(c *Conn) {
		l := made(t, c, "a0")
		if err := c.Do(UpLink(l.Index).String(unix.IFLA_IFALIAS, "of ours").Uint32(unix.IFLA_MTU, 1300)); err != nil {
			t.Fatal(err)
		}
		l, _ = c.LinkByName("a0")
		if !l.Up || l.MTU != 1300 || l.Alias != "of ours" || l.Kind != "veth" {
			t.Errorf("read back %+v", l)
		}
		if err := c.Do(NewLink("a0", "veth", nil)); !Exists(err) {
			t.Errorf("made twice: %v", err)
		}
		other := made(t, c, "b0")
		for range 2 {
			if err := c.DeleteLinks([]int{l.Index, other.Index}); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.LinkByName("b0"); !NotFound(err) {
			t.Errorf("still there: %v", err)
		}
		if all, err := c.Links(); err != nil || len(all) == 0 {
			t.Errorf("links: %v %v", all, err)
		}
	})
}

func TestAddress(t *testing.T) {
	inside(t, func(c *Conn) {
		a := Address{Index: made(t, c, "a0").Index, Local: netip.MustParseAddr("10.0.0.1"), Reach: netip.MustParsePrefix("10.0.0.2/32"), Metric: 7}
		for range 2 {
			if err := c.AddAddress(a); err != nil {
				t.Fatal(err)
			}
		}
		for _, index := range []int{0, a.Index} {
			if got, err := c.Addresses(index); err != nil || len(got) != 1 || got[0] != a {
				t.Errorf("read back %v, %v", got, err)
			}
		}
		for range 2 {
			if err := c.DeleteAddress(a); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestShaper reads back exactly what was set, below and above 32 bits.
func TestShaper(t *testing.T) {
	inside(t, func(c *Conn) {
		index := made(t, c, "a0").Index
		for _, rate := range []uint64{125, 1_250_000, 4294967295, 4294967296, 12_500_000_000} {
			if err := c.Do(SetTBF(index, Shaper{Rate: rate, Burst: 200000, Limit: 1 << 20})); err != nil {
				t.Fatal(err)
			}
			if q, err := c.RootQdisc(index); err != nil || q.Kind != "tbf" || q.TBF() != rate {
				t.Errorf("tbf %d: read back %d, %v", rate, q.TBF(), err)
			}
		}
		if err := c.DeleteQdisc(index, TCRoot); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(SetHTB(index, 4)); err != nil {
			t.Fatal(err)
		}
		for _, rate := range []uint64{1000, 4294967296} {
			class := HTBClass{Rate: rate, Ceil: rate + 1000, Burst: 3000, CeilBurst: 3000, Quantum: 3000, Priority: 5}
			if err := c.Do(SetClass(index, Handle(1, 4), Handle(1, 0), class)); err != nil {
				t.Fatal(err)
			}
			list, err := c.Classes(index)
			if err != nil || len(list) != 1 || list[0].HTB().Rate != rate || list[0].HTB().Ceil != rate+1000 {
				t.Errorf("class %d: read back %v, %v", rate, list, err)
			}
		}
	})
}

func TestGroup(t *testing.T) {
	needRoot(t)
	all, err := FindCgroups("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	g := all.Group(filepath.Join("sublet-test", filepath.Base(t.TempDir()), "node"))
	defer g.RemoveParents()
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	for _, cpu := range []int64{500, 3, 2000, 0, 9} {
		if err := g.SetCPU(cpu); err != nil || g.CPU() != cpu {
			t.Errorf("cpu %d: read back %d, %v", cpu, g.CPU(), err)
		}
	}
	for _, memory := range []int64{1 << 24, 1 << 20, 0, 1 << 30} {
		if err := g.SetMemory(memory); err != nil || g.Memory() != memory {
			t.Errorf("memory %d: read back %d, %v", memory, g.Memory(), err)
		}
	}
	for range 2 {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
	if g.Exists() {
		t.Error("still there")
	}
}

func TestErrorsHaveTheKernelsWords(t *testing.T) {
	inside(t, func(c *Conn) {
		err := c.Do(NewLink("x0", "no-such-kind", nil))
		if !errors.Is(err, unix.EOPNOTSUPP) || err.Error() == unix.EOPNOTSUPP.Error() {
			t.Errorf("got %v", err)
		}
	})
}
