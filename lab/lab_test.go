package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/vnet"
)

// The test program stands in for sublet, and for a process that does Up.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			standInServer(os.Args[3])
			return
		case "agent":
			standInAgent(os.Args[3:])
			return
		case WiresCommand:
			os.Exit(WiresMain(os.Args[2:]))
		case "up":
			standInUp(os.Args[2], os.Args[3])
			return
		}
	}
	os.Exit(m.Run())
}

func standInServer(run string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if _, err := net.Listen("unix", filepath.Join(run, "api.sock")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	<-term
}

// standInAgent leaves what an agent makes: a namespace, a socket, a control
// group with a process that carries no mark. It does not hear SIGTERM.
func standInAgent(args []string) {
	host, run, group := args[0], args[2], args[4]
	if os.Getenv("STAND_IN_STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if host == os.Getenv("STAND_IN_FAILS") {
		fmt.Println("no luck today")
		os.Exit(1)
	}
	ns, err := kernel.NewNamespace(func() error { return nil })
	must(err)
	must(kernel.Bind(ns, filepath.Join(run, "netns", host, "alice.net.n1")))
	groups, err := kernel.FindCgroups("/sys/fs/cgroup")
	must(err)
	node := groups.Group(filepath.Join(group, host, "alice.net.n1"))
	must(node.Make())
	// As a node's process must, it loses the mark only inside the group.
	join := append([]string{"-c", `for f; do echo $$ >"$f"; done; exec env -i sleep 1000`, "sh"}, node.Files()...)
	must(exec.Command("sh", join...).Start())
	_, err = net.Listen("unix", filepath.Join(run, "agent-"+host+".sock"))
	must(err)
	time.Sleep(time.Hour)
}

func standInUp(run, name string) {
	_, err := Up(context.Background(), Spec{Name: name, Run: run, Exe: os.Args[0], Substrate: twoSwitches(vnet.Gbit)})
	must(err)
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// twoSwitches is h1 - s1 - s2 - h2, and h3 with two links to s1.
func twoSwitches(capacity vnet.Rate) vnet.Substrate {
	sub := hosts(3)
	sub.Switches = []string{"s1", "s2"}
	for _, l := range [][3]string{{"a1", "h1", "s1"}, {"core", "s1", "s2"}, {"a2", "s2", "h2"}, {"a3", "h3", "s1"}, {"a4", "h3", "s1"}} {
		join(&sub, l[0], l[1], l[2], capacity)
	}
	return sub
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// up brings a lab up for one test, and checks that it leaves nothing.
func up(t testing.TB, sub vnet.Substrate) (*Lab, Spec) {
	t.Helper()
	needRoot(t)
	spec := specOf(t, sub)
	return upAs(t, spec), spec
}

// upAs is up for what is specified in another way.
func upAs(t testing.TB, spec Spec) *Lab {
	t.Helper()
	before := census(t, spec)
	l, err := Up(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Down(spec.Run); err != nil {
			t.Error(err)
		}
		leavesNothing(t, spec, before)
	})
	return l
}

func specOf(t testing.TB, sub vnet.Substrate) Spec {
	run := filepath.Join(t.TempDir(), "run")
	return Spec{Name: fmt.Sprintf("t%x", os.Getpid()), Run: run, Exe: os.Args[0], Substrate: sub, Ready: func(context.Context) error {
		for _, h := range sub.Hosts {
			if _, err := os.Stat(filepath.Join(run, "agent-"+string(h.Name)+".sock")); err != nil {
				return err
			}
		}
		_, err := os.Stat(filepath.Join(run, "api.sock"))
		return err
	}}
}

// census lists what a lab of this run directory may leave on the machine.
func census(t testing.TB, spec Spec) []string {
	t.Helper()
	run := spec.Run
	var list []string
	for _, pattern := range []string{netnsDir + "/" + spec.Name + "-*", netnsDir + "/" + spec.Name + ".*", run + "*", "/sys/fs/cgroup/" + Cgroup(run), "/sys/fs/cgroup/*/" + Cgroup(run)} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	mounts, err := mountsBelow(run)
	if err != nil {
		t.Fatal(err)
	}
	return append(list, mounts...)
}

func leavesNothing(t testing.TB, spec Spec, before []string) {
	t.Helper()
	for _, thing := range census(t, spec) {
		if !slices.Contains(before, thing) {
			t.Errorf("left behind: %s", thing)
		}
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environment, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.Contains(string(command), spec.Run) || strings.Contains(string(environment), "SUBLET_LAB=") && strings.Contains(string(command), os.Args[0]) {
			t.Errorf("left behind: process %s %q", e.Name(), command)
		}
	}
}

func in(t testing.TB, spec Spec, node string, argv ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", spec.Name + "-" + node}, argv...)...).CombinedOutput()
	return string(out), err
}

func TestUpDown(t *testing.T) {
	l, spec := up(t, twoSwitches(vnet.Gbit))
	port := func(link string, end int) vnet.Port {
		found, _ := l.Substrate.LinkOf(link)
		return found.Ports[end]
	}
	if p := port("core", 0); p != (vnet.Port{}) {
		t.Errorf("a switch has a port: %v", p)
	}
	if a, b := port("a3", 0), port("a4", 0); a.Interface != "to-s1" || a.Interface == b.Interface || len(b.Interface) > 15 {
		t.Errorf("parallel links: %v and %v", a, b)
	}
	h2 := port("a2", 1)
	for _, from := range []string{"a1", "a3", "a4"} {
		link, _ := l.Substrate.LinkOf(from)
		near := link.Ports[0]
		if out, err := in(t, spec, link.Ends[0], "ping", "-q", "-c", "1", "-W", "2", "-I", near.Interface, h2.Address.String()); err != nil {
			t.Errorf("ping by %s: %v\n%s", from, err, out)
		}
		if out, err := in(t, spec, "h2", "ping", "-q", "-c", "1", "-W", "2", near.Address.String()); err != nil {
			t.Errorf("ping to %s: %v\n%s", from, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(spec.Run, "lab", "substrate.json")); err != nil {
		t.Error(err)
	}
	status, err := StatusOf(spec.Run)
	if err != nil || len(status.Processes) != 4 || len(status.Missing) != 0 || !status.Processes[3].Alive {
		t.Errorf("status %+v, error %v", status, err)
	}
	if _, err := Up(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "is up already") || strings.Contains(err.Error(), "\n") {
		t.Errorf("second Up: %v", err)
	}
	other := spec
	other.Run = filepath.Join(t.TempDir(), "other")
	if _, err := Up(t.Context(), other); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("Up of the same name elsewhere: %v", err)
	}
	if _, err := os.Stat(other.Run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused Up left its run directory: %v", err)
	}
}

func TestAgentsAreInside(t *testing.T) {
	t.Setenv("STAND_IN_STUBBORN", "1") // and are killed if they do not end
	_, spec := up(t, demo())
	state, err := readState(spec.Run)
	if err != nil {
		t.Fatal(err)
	}
	inode := func(path string) string {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
	}
	for _, p := range state.Processes {
		want := "/proc/self/ns/net"
		if host, isAgent := strings.CutPrefix(p.Name, "agent-"); isAgent {
			want = filepath.Join(netnsDir, spec.Name+"-"+host)
		}
		if got := inode(fmt.Sprintf("/proc/%d/ns/net", p.PID)); got != inode(want) {
			t.Errorf("%s is not in %s", p.Name, want)
		}
		if inode(fmt.Sprintf("/proc/%d/ns/mnt", p.PID)) != inode("/proc/self/ns/mnt") {
			t.Errorf("%s is in another mount namespace: what it mounts would go with it", p.Name)
		}
	}
}

// A run directory that was there before stays, with what is not the lab's.
func TestOwnRunDirectory(t *testing.T) {
	needRoot(t)
	spec := specOf(t, demo())
	kept := filepath.Join(spec.Run, "kept", "by-others")
	must(os.MkdirAll(kept, 0o755))
	spec.Data = filepath.Join(t.TempDir(), "data")
	must(os.Mkdir(spec.Data, 0o755))
	if _, err := Up(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := Down(spec.Run); err != nil {
		t.Error(err)
	}
	var left []string
	must(filepath.WalkDir(spec.Run, func(path string, _ os.DirEntry, err error) error {
		left = append(left, path)
		return err
	}))
	if want := []string{spec.Run, filepath.Dir(kept), kept}; !slices.Equal(left, want) {
		t.Errorf("left: %q", left)
	}
	if _, err := os.Stat(spec.Data); err != nil {
		t.Errorf("a data directory that was given is gone: %v", err)
	}
}

// What agents keep for leases that end with a lab goes with it, images too, unless agents of
// others keep something there.
func TestKeptFilesEndWithTheLab(t *testing.T) {
	needRoot(t)
	for _, other := range []bool{false, true} {
		spec := specOf(t, demo())
		kept := func(host string) string { return filepath.Join(agentData(spec.Run), "kept", host, "uid7.n.a", "disk") }
		image := filepath.Join(agentData(spec.Run), "images", "x")
		must(os.MkdirAll(spec.Run, 0o755))
		if _, err := Up(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{kept("h1"), kept("elsewhere"), image} {
			must(os.MkdirAll(dir, 0o755))
		}
		if other {
			must(os.WriteFile(filepath.Join(agentData(spec.Run), "plan-elsewhere.json"), nil, 0o644))
		}
		if err := Down(spec.Run); err != nil {
			t.Error(err)
		}
		for path, want := range map[string]bool{kept("h1"): false, kept("elsewhere"): other, image: other} {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("others: %t: %s: %v", other, path, err)
			}
		}
	}
}

func TestDownIsIdempotent(t *testing.T) {
	needRoot(t)
	run := filepath.Join(t.TempDir(), "none")
	for range 2 {
		if err := Down(run); err != nil {
			t.Error(err)
		}
	}
	if _, err := StatusOf(run); !errors.Is(err, ErrNone) {
		t.Errorf("status: %v", err)
	}
}

func TestFailedUpLeavesNothing(t *testing.T) {
	needRoot(t)
	t.Setenv("STAND_IN_FAILS", "h2")
	spec := specOf(t, demo())
	before := census(t, spec)
	_, err := Up(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "agent-h2 ended at once: no luck today") {
		t.Errorf("error %v", err)
	}
	leavesNothing(t, spec, before)
}

func TestCancelledUpLeavesNothing(t *testing.T) {
	needRoot(t)
	spec := specOf(t, demo())
	before := census(t, spec)
	spec.Ready = func(context.Context) error { return errors.New("never") }
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	t.Setenv("STAND_IN_STUBBORN", "1")
	began := time.Now()
	if _, err := Up(ctx, spec); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "nothing of the lab is left") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("undone after %s: agents were asked to end, and waited for", took)
	}
	leavesNothing(t, spec, before)
}

// Up is killed at points all over its life; Down cleans each time.
func TestKilledUp(t *testing.T) {
	needRoot(t)
	spec := specOf(t, twoSwitches(vnet.Gbit))
	before := census(t, spec)
	for after := time.Duration(0); after < 300*time.Millisecond; after += 15 * time.Millisecond {
		cmd := exec.Command(os.Args[0], "up", spec.Run, spec.Name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := Down(spec.Run); err != nil {
			t.Errorf("killed after %v: %v", after, err)
		}
		_ = os.Remove(spec.Run) // made by an Up that was killed before it wrote that down
		leavesNothing(t, spec, before)
		if t.Failed() {
			t.Fatalf("killed after %v", after)
		}
	}
}

// Who finds a lab's directory locked is told by whom.
func TestLockNamesItsHolder(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lockDir(dir, false); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(process %d) is at work in", os.Getpid())) || !strings.Contains(err.Error(), os.Args[0]) {
		t.Errorf("error %v", err)
	}
}
