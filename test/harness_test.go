// Package test runs the whole program: real labs, real kernels, from the
// outside, as a user would. Each test leaves the machine as it found it.
package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	product "sublet/lab"
	"sublet/vnet"
)

// program is the program under test: $SUBLET_BIN, or built here.
var program string

// labsAtOnce is how many labs run side by side, of tests that measure nothing:
// they wait more than they work, so this is not the number of processors.
const labsAtOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", labsAtOnce); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "sublet-test")
	if err != nil {
		panic(err)
	}
	if program = os.Getenv("SUBLET_BIN"); program == "" {
		program = filepath.Join(dir, "sublet")
		build := exec.Command("go", "build", "-o", program, "sublet/cmd/sublet")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("build sublet: %v\n%s", err, out))
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// lab is one that is up.
type lab struct {
	t   *testing.T
	run string
}

// result of one command.
type result struct {
	code     int
	out, err string
}

// newLab makes a lab out of a substrate's name or text, and checks after the
// test that nothing of it is left.
//
//	demo: h1 ---2G--- h2      triangle: h1 ---1G--- h2      star:3: h1 -1G- s1 -1G- h2
//	                                      \1G     /1G                      |1G
//	                                        -- h3 --                       h3
func newLab(t *testing.T, substrate string, flags ...string) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	l := &lab{t: t, run: shortDir(t)}
	before := census(l.run)
	arg := substrate
	if strings.Contains(substrate, "\n") {
		arg = l.file("substrate.yaml", substrate)
	}
	l.must(append([]string{"lab", "up", "--name", labName(l.run), arg}, flags...)...)
	t.Cleanup(func() {
		if t.Failed() {
			l.logs()
		}
		l.must("lab", "down")
		if diff := difference(before, census(l.run)); diff != "" {
			t.Errorf("left on the machine, or gone from it:\n%s", diff)
		}
	})
	return l
}

// shortDir is short enough for sockets (108 bytes).
func shortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/run", "slt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

func labName(run string) string { return filepath.Base(filepath.Dir(run)) }

// file writes a file beside the run directory.
func (l *lab) file(name, text string) string {
	l.t.Helper()
	path := filepath.Join(filepath.Dir(l.run), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// commandTimeout bounds every command: nothing may hang.
const commandTimeout = 2 * time.Minute

func (l *lab) sublet(args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	return runCommand(exec.CommandContext(ctx, program, append([]string{"--run", l.run}, args...)...))
}

func runCommand(cmd *exec.Cmd) result {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := result{out: out.String(), err: errs.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		r.code, r.err = -1, err.Error()
	}
	return r
}

// must runs a command that has to succeed, and returns what it printed.
func (l *lab) must(args ...string) string {
	l.t.Helper()
	r := l.sublet(args...)
	if r.code != 0 {
		l.t.Fatalf("sublet %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// up asks for a network written in YAML.
func (l *lab) up(text string) {
	l.t.Helper()
	l.must("up", l.file("request.yaml", text))
}

// leaseView is what scripts read of `leases -o json`.
type leaseView struct {
	Network string
	Tenant  string
	State   vnet.State
	Links   []struct {
		Name, From, To string
		Alloc          vnet.Rate `json:"alloc_bps"`
	}
	Mapping vnet.Mapping
}

func (l *lab) leases() []leaseView {
	l.t.Helper()
	return decode[[]leaseView](l.t, l.must("leases", "-o", "json"))
}

// alloc finds the allocated rate of a link from a node.
func (l *lab) alloc(network, link, from string) vnet.Rate {
	l.t.Helper()
	for _, v := range l.leases() {
		for _, k := range v.Links {
			if v.Network == network && v.State != vnet.Ended && k.Name == link && k.From == from {
				return k.Alloc
			}
		}
	}
	l.t.Fatalf("no link %s from %s in %s", link, from, network)
	return 0
}

// check measures a network.
func (l *lab) check(network string, args ...string) (vnet.Verdict, int) {
	l.t.Helper()
	r := l.sublet(append([]string{"check", network, "-o", "json"}, args...)...)
	if r.code != 0 && r.code != 4 {
		l.t.Fatalf("check %s: exit code %d\n%s%s", network, r.code, r.out, r.err)
	}
	return decode[vnet.Verdict](l.t, r.out), r.code
}

// checked measures a network until a verdict is as it should be, three times at
// most, since other work may take the processor away: where it did so to the
// last, nothing was measured.
func (l *lab) checked(network string, wrong func(v vnet.Verdict, code int) error, args ...string) {
	l.t.Helper()
	stall.Try(l.t, func() (float64, error) {
		v, code := l.check(network, args...)
		return lacking(v), wrong(v, code)
	})
}

// broken says what a check found broken, if anything.
func broken(v vnet.Verdict, code int) error {
	if code == 0 && v.OK {
		return nil
	}
	return fmt.Errorf("exit code %d, verdict %+v", code, v)
}

// lacking is what the worst link of a verdict is off what it should have, as
// stall.Try wants it: nothing where the check itself says that it did not
// measure it.
func lacking(v vnet.Verdict) (most float64) {
	if len(v.Unreached) > 0 {
		return stall.Never
	}
	for _, k := range v.Links {
		if k.Outcome == vnet.NotMeasured || k.Outcome == vnet.LinkDown {
			continue
		}
		least := k.Min
		if k.OK && k.Min > 0 {
			least = k.Alloc
		}
		if !k.OK && (k.TCP == 0 && k.UDP == 0 || k.Latency > k.LatencyBound && k.LatencyBound > 0) {
			return stall.Never
		}
		most = max(most, k.UDPLoss)
		for _, rate := range [2]vnet.Rate{k.TCP, k.UDP} {
			most = max(most, 1-float64(rate)/float64(max(least, 1)), stall.Above(float64(rate)/float64(max(k.Alloc, 1))-1))
		}
	}
	for _, c := range v.Chains {
		if c.Rate > 0 && c.Outcome != vnet.NotMeasured {
			part := float64(c.Measured) / float64(c.Rate)
			most = max(most, 1-part, stall.Above(part-1))
		}
	}
	return most
}

// needFabric skips a test where a fabric of relays cannot be made.
func needFabric(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 || !haveFRR() {
		t.Skip("a fabric of relays takes root and FRR")
	}
}

// haveFRR says whether OSPF's daemon is there.
func haveFRR() bool { return len(matches(kernel.FRR("ospfd"))) > 0 }

// settled waits until no host would change anything.
func (l *lab) settled() {
	l.t.Helper()
	eventually(l.t, 30*time.Second, func() error {
		type steps struct{ Steps []string }
		r := l.sublet("plan", "-o", "json")
		if r.code != 0 {
			return errors.New(r.err)
		}
		for _, h := range decode[[]steps](l.t, r.out) {
			if len(h.Steps) > 0 {
				return fmt.Errorf("would still do:\n%s", strings.Join(h.Steps, "\n"))
			}
		}
		return nil
	})
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// eventually polls until try succeeds. What comes later while the machine is
// busy is not measured.
func eventually(t testing.TB, within time.Duration, try func() error) {
	t.Helper()
	stall.Wait(t, within, 50*time.Millisecond, try)
}

// logs shows what the lab's processes said.
func (l *lab) logs() {
	files, _ := filepath.Glob(filepath.Join(l.run, "lab", "*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		l.t.Logf("%s:\n%s", filepath.Base(f), strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
}

// census lists what a lab of this run directory could leave on a machine:
// namespaces, control groups, mounts, processes, files; and the devices of the
// machine's own namespace, which no lab has a reason to touch. Other tests may
// run beside this one, so only what names the run directory or the lab counts.
func census(run string) []string {
	group := product.Cgroup(run)
	seen := matches("/run/netns/"+labName(run)+"*", "/sys/class/net/*", run, "/sys/fs/cgroup/"+group, "/sys/fs/cgroup/*/"+group)
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, labName(run)) {
			seen = append(seen, "mount "+strings.TrimSpace(line))
		}
	}
	for _, file := range matches("/proc/[0-9]*/cmdline") {
		words, _ := os.ReadFile(file)
		if strings.Contains(string(words), run) {
			seen = append(seen, file+" "+strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return seen
}

func matches(patterns ...string) []string {
	var all []string
	for _, p := range patterns {
		files, _ := filepath.Glob(p)
		all = append(all, files...)
	}
	return all
}

func difference(before, after []string) string {
	var b strings.Builder
	for _, s := range after {
		if !slices.Contains(before, s) {
			fmt.Fprintf(&b, "+ %s\n", s)
		}
	}
	for _, s := range before {
		if !slices.Contains(after, s) {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	return b.String()
}

// traffic is what has come in by a device and gone out, as the kernel counts.
type traffic struct{ bytesIn, packetsIn, bytesOut int }

// passed reads the counters of a device in the namespace of a file.
func passed(t *testing.T, namespace, device string) (n traffic) {
	t.Helper()
	within(t, namespace, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		_, line, _ := strings.Cut(string(text), device+":")
		rest := new(string) // errs, drop, fifo, frame, compressed, multicast: of what came in
		_, err = fmt.Sscan(line, &n.bytesIn, &n.packetsIn, rest, rest, rest, rest, rest, rest, &n.bytesOut)
		return err
	})
	return n
}
