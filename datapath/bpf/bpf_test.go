package bpf

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// verdict is a program that ends with a verdict, and counts nothing.
func verdict(t *testing.T, v int32) *ebpf.ProgramSpec {
	t.Helper()
	return &ebpf.ProgramSpec{
		Name: "verdict", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, v), asm.Return()},
	}
}

func testHost(t *testing.T) *kernel.Host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to load programs")
	}
	h, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func testPins(t *testing.T, h *kernel.Host) *Pins {
	t.Helper()
	p, err := OpenPins(h, "part")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Unpin(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func namespace(t *testing.T) *os.File {
	t.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

func load(t *testing.T, p *Pins, v int32) *ebpf.Program {
	t.Helper()
	c, _, err := p.Load(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"verdict": verdict(t, v)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Programs["verdict"]
}

func id(t *testing.T, p *ebpf.Program) ebpf.ProgramID {
	t.Helper()
	number, err := ID(p)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func TestPinnedStateIsTakenOver(t *testing.T) {
	h := testHost(t)
	p, ns := testPins(t, h), namespace(t)
	hook := Hook{Namespace: ns, Index: 1, Attach: ebpf.AttachTCXIngress}
	first := load(t, p, 0)
	if err := p.Attach("lo", hook, first); err != nil {
		t.Fatal(err)
	}
	again := testPins(t, h)
	same := load(t, again, 0)
	if id(t, same) != id(t, first) {
		t.Error("the same program was loaded anew")
	}
	on, err := again.Attached("lo", 1, same)
	if err != nil || !on {
		t.Errorf("a second opening finds the program attached: %t, %v", on, err)
	}
	other := load(t, again, 2)
	if on, err := again.Attached("lo", 1, other); err != nil || on {
		t.Errorf("another program is attached: %t, %v", on, err)
	}
	if err := again.Attach("lo", hook, other); err != nil {
		t.Fatal(err)
	}
	if on, err := again.Attached("lo", 1, other); err != nil || !on {
		t.Errorf("the newer program is attached: %t, %v", on, err)
	}
}

func TestLinkOfAGoneDeviceIsMadeAnew(t *testing.T) {
	p := testPins(t, testHost(t))
	program := load(t, p, 0)
	for range 2 {
		ns := namespace(t)
		if err := p.Attach("lo", Hook{Namespace: ns, Index: 1, Attach: ebpf.AttachTCXIngress, First: true}, program); err != nil {
			t.Fatal(err)
		}
		c, err := kernel.DialIn(ns)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Do(kernel.NewLink("other", "veth", nil))
		if err == nil {
			var l kernel.Link
			if l, err = c.LinkByName("other"); err == nil {
				if err = p.Attach("veth", Hook{Namespace: ns, Index: l.Index, Attach: ebpf.AttachTCXEgress}, program); err == nil {
					err = c.DeleteLink(l.Index)
				}
			}
		}
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		if _, on, err := p.attached("veth"); err != nil || on.index != 0 {
			t.Errorf("the link of a deleted device is on %d, %v", on.index, err)
		}
		ns.Close()
	}
}

func TestMapOfAnotherLayoutIsMadeAnew(t *testing.T) {
	p := testPins(t, testHost(t))
	spec := func(value uint32) *ebpf.CollectionSpec {
		return &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
			"table": {Name: "table", Type: ebpf.Hash, KeySize: 4, ValueSize: value, MaxEntries: 8, Pinning: ebpf.PinByName},
		}}
	}
	for _, step := range []struct {
		value   uint32
		renewed int
	}{{4, 1}, {4, 0}, {8, 1}, {8, 0}} {
		c, renewed, err := p.Load(spec(step.value))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if len(renewed) != step.renewed {
			t.Errorf("with values of %d bytes %v were made anew", step.value, renewed)
		}
	}
}

// A load that fails, here for want of file descriptors once some maps are made
// and others put aside, leaves what was pinned before it, and no more.
func TestFailedLoadLeavesNothingBehind(t *testing.T) {
	h := testHost(t)
	spec := func(value uint32) *ebpf.CollectionSpec {
		s := &ebpf.CollectionSpec{Maps: make(map[string]*ebpf.MapSpec), Programs: map[string]*ebpf.ProgramSpec{"verdict": verdict(t, 0)}}
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			s.Maps[name] = &ebpf.MapSpec{Name: name, Type: ebpf.Hash, KeySize: 4, ValueSize: value, MaxEntries: 1, Pinning: ebpf.PinByName}
		}
		return s
	}
	p := testPins(t, h)
	failing := func(value uint32) {
		t.Helper()
		var was unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Dup(0) // the lowest free number
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(next)
		few := unix.Rlimit{Cur: uint64(next) + 4, Max: was.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		_, _, err = p.Load(spec(value))
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, unix.EMFILE) {
			t.Fatalf("with four file descriptors the load says %v", err)
		}
	}
	failing(4)
	if _, err := os.Stat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed load left its directory: %v", err)
	}
	p = testPins(t, h)
	c, _, err := p.Load(spec(4))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Maps["four"].Put(uint32(7), uint32(9)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	failing(8)
	c, renewed, err := p.Load(spec(4))
	if err != nil || len(renewed) > 0 {
		t.Fatalf("after a failed load of another layout %v were made anew: %v", renewed, err)
	}
	defer c.Close()
	var value uint32
	if err := c.Maps["four"].Lookup(uint32(7), &value); err != nil || value != 9 {
		t.Errorf("a failed load of another layout emptied a map: %d, %v", value, err)
	}
}

func TestNothingPinnedLeavesNoMount(t *testing.T) {
	h := testHost(t)
	var pins [2]*Pins
	for i, part := range []string{"one", "two"} {
		p, err := OpenPins(h, part)
		if err != nil {
			t.Fatal(err)
		}
		pins[i] = p
	}
	for _, p := range pins {
		if _, err := os.Stat(p.dir); err != nil {
			t.Errorf("closing another part's pins: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(h.Dir("bpf"), &fs); err != unix.ENOENT {
		t.Errorf("still there: type %x, %v", fs.Type, err)
	}
}

var recipe = regexp.MustCompile(`(?m)^//go:generate \.\./bpf/generate (.*)$`)

// The committed objects are what the pinned compiler makes of the sources.
func TestGenerated(t *testing.T) {
	if _, err := exec.LookPath("clang-14"); err != nil {
		t.Skip("clang-14 is not installed: apt-get install clang-14 llvm-14")
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range recipe.FindAllStringSubmatch(string(text), -1) {
			t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) { regenerate(t, filepath.Dir(file), match[1]) })
		}
	}
}

func regenerate(t *testing.T, part, arguments string) {
	out := t.TempDir()
	cmd := exec.Command("../bpf/generate", append(strings.Fields(arguments), "-output-dir", out)...)
	// generate takes options behind its two names and before the source.
	cmd.Dir, cmd.Env = part, append(os.Environ(), "GOPACKAGE="+filepath.Base(part))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
	made, err := filepath.Glob(out + "/*")
	if err != nil || len(made) == 0 {
		t.Fatalf("nothing was generated: %v", err)
	}
	for _, file := range made {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(part, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s/%s is not what its source makes: run go generate ./datapath/%s", part, filepath.Base(file), filepath.Base(part))
		}
	}
}

// With cgo, which is on where a C compiler is, the go command takes a .c file
// for part of the package and refuses it, unless told to leave it alone.
func TestSourcesAreNotForCgo(t *testing.T) {
	sources, err := filepath.Glob("../*/*.bpf.c")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources found:", err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "//go:build ignore\n\n") {
			t.Errorf("%s does not begin with //go:build ignore and an empty line", name)
		}
	}
}

// What somebody unmounts is mounted and pinned again, from what is still open;
// what is mounted and only covered is left alone.
func TestRepin(t *testing.T) {
	h := testHost(t)
	p := testPins(t, h)
	program := load(t, p, 0)
	ns := namespace(t)
	hook := Hook{Namespace: ns, Index: 1, Attach: ebpf.AttachTCXIngress}
	if err := p.Attach("lo", hook, program); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", h.Dir("bpf"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	err, left := p.Repin(), error(nil)
	if _, left = Left(h, "part"); !errors.Is(err, kernel.ErrUnseen) || !errors.Is(left, kernel.ErrUnseen) {
		t.Errorf("covered: %v, %v", err, left)
	}
	if err := unix.Unmount(h.Dir("bpf"), 0); err != nil {
		t.Fatal(err)
	}
	if on, err := p.Attached("lo", 1, program); err != nil || !on {
		t.Errorf("uncovered: attached %v, %v", on, err)
	}
	if err := unix.Unmount(h.Dir("bpf"), unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := p.Repin(); err != nil {
		t.Fatal(err)
	}
	if err := p.Attach("lo", hook, program); err != nil {
		t.Fatal(err)
	}
	if on, err := p.Attached("lo", 1, program); err != nil || !on {
		t.Errorf("mounted again: attached %v, %v", on, err)
	}
	again, err := ebpf.LoadPinnedProgram(p.Path(ProgramPin("verdict")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if id(t, again) != id(t, program) {
		t.Error("another program is pinned")
	}
}

// A map that cannot be opened is not thrown away.
func TestUnusableMapStays(t *testing.T) {
	h := testHost(t)
	p := testPins(t, h)
	if err := os.WriteFile(p.Path("other"), nil, 0o600); err == nil {
		t.Fatal("a plain file in a bpf file system")
	}
	program := load(t, p, 0)
	// A program is pinned where a map should be.
	c, err := program.Clone()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Pin(p.Path("numbers")); err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Load(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
		"numbers": {Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1, Pinning: ebpf.PinByName},
	}})
	if !errors.Is(err, kernel.ErrUnseen) {
		t.Errorf("loaded: %v", err)
	}
	if _, err := os.Stat(p.Path("numbers")); err != nil {
		t.Error(err)
	}
}

// Pins of a former version get their present names, with what is in them; after
// a load that fails they have their former ones.
func TestPinsAreRenamed(t *testing.T) {
	p := testPins(t, testHost(t))
	spec := func(name string, value uint32) *ebpf.CollectionSpec {
		return &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
			name: {Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: value, MaxEntries: 1, Pinning: ebpf.PinByName},
		}}
	}
	c, _, err := p.Load(spec("former", 4))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Maps["former"].Put(uint32(0), uint32(7)); err != nil {
		t.Fatal(err)
	}
	to := Renamed{From: "former", To: "present"}
	broken := spec("present", 8)
	broken.Programs = map[string]*ebpf.ProgramSpec{"broken": {Name: "broken", Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Return()}}}
	if _, _, err := p.Load(broken, to); err == nil {
		t.Fatal("a program that is none was loaded")
	}
	if names, err := p.Names(); err != nil || !slices.Equal(names, []string{"former"}) {
		t.Errorf("after a failed load: %v, %v", names, err)
	}
	now, renewed, err := p.Load(spec("present", 4), to)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	var value uint32
	if err := now.Maps["present"].Lookup(uint32(0), &value); err != nil || value != 7 || len(renewed) != 0 {
		t.Errorf("renamed: %d, %v, made anew %v", value, err, renewed)
	}
	if names, err := p.Names(); err != nil || !slices.Equal(names, []string{"present"}) {
		t.Errorf("after a load: %v, %v", names, err)
	}
}
