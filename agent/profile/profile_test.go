package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sys/unix"

	"sublet/agent/control"
	"sublet/datapath/kernel"
)

// TestMain lets a test start this program as the launcher, and as functions.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == kernel.InitCommand:
		fmt.Fprintln(os.Stderr, kernel.RunLaunch())
		os.Exit(1)
	case len(os.Args) > 1 && os.Args[1] == "forward":
		fmt.Fprintln(os.Stderr, forward("eth0", "eth1"))
		os.Exit(1)
	case len(os.Args) > 1 && os.Args[1] == "complain":
		fmt.Fprintln(os.Stderr, "no rules\x1b[2J")
		os.Exit(7)
	case len(os.Args) > 1 && os.Args[1] == "swallow":
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// forward is a function: frames of one interface go out of another.
func forward(from, to string) error {
	var fds [2]int
	for i, name := range []string{from, to} {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		ifr, err := unix.NewIfreq(name)
		if err == nil {
			err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
		}
		if err != nil {
			return err
		}
		protocol := uint16(0)
		if i == 0 {
			protocol = 0x0300 // ETH_P_ALL, in the order of the network
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: int(ifr.Uint32())}); err != nil {
			return err
		}
		fds[i] = fd
	}
	frame := make([]byte, 2048)
	for {
		n, err := unix.Read(fds[0], frame)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			_, _ = unix.Write(fds[1], frame[:n]) // a full queue drops
		}
	}
}

func needs(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	groups, err := kernel.FindCgroups("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if _, version := groups.Controller("cpu"); version == 0 {
		t.Skip("no hierarchy with the cpu controller is mounted")
	}
}

func self(t *testing.T, role string) []string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{path, role}
}

// gone says that no group of this process is left.
func gone(t *testing.T) {
	t.Helper()
	groups, err := kernel.FindCgroups("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if groups.Group(filepath.Join(groupsOf, fmt.Sprint(os.Getpid()))).Exists() {
		t.Error("the control group is left")
	}
}

// A function that is limited uses no more than its share, forwards, and nothing
// of it is left. What it costs is what it used.
func TestMeasure(t *testing.T) {
	needs(t)
	spec := Spec{Argv: self(t, "forward"), Shares: []float64{0.1, 0.3}, Sizes: []int{60, 1514}, Window: 300 * time.Millisecond}
	r, err := Measure(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	gone(t)
	if len(r.Points) != 4 || r.Profile.Cost(1, 60) <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Points {
		// A window has one period of the quota more than it should at most, and a
		// period's time that was given before.
		if p.Used > p.Share*1.25+0.05 {
			t.Errorf("with %.0f %% it used %.0f %%", 100*p.Share, 100*p.Used)
		}
		if p.Packets <= 0 || p.Memory <= 0 || p.Cost < 1e-8 || p.Cost > 1e-2 {
			t.Errorf("%+v", p)
		}
	}
	valid(t, r)
	for _, m := range r.Missing {
		if m.Meter != "energy" || m.Why == "" {
			t.Errorf("missing: %+v", m)
		}
	}
}

// A function whose profile says that it costs a core and more is soon given what
// the rate takes, as measured: within the factor that a busy machine makes of it.
func TestHold(t *testing.T) {
	needs(t)
	const rate, size = 20e6, 600
	moments, err := Hold(t.Context(), self(t, "forward"), control.Profile{Fixed: 1e-3}, rate, []Phase{{Size: size, Length: 2500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	gone(t)
	// Moments in which the sender had no processor say nothing of the share.
	var used, served float64
	var shares []float64
	for _, m := range moments[len(moments)/2:] {
		if m.Offered >= rate {
			used, served, shares = used+m.Used*m.Seconds, served+m.Rate*m.Seconds/8/size, append(shares, m.Share)
		}
	}
	if len(shares) < 5 || served == 0 {
		t.Skipf("not measured: the sender had too little of a processor in all but %d moments", len(shares))
	}
	slices.Sort(shares)
	median := shares[len(shares)/2]
	if need := rate / 8 / size * used / served; moments[0].Share != 1 || median > 2.5*need || median < need/2.5 {
		t.Errorf("a share of %.3f at first, %.3f later; the rate takes %.3f", moments[0].Share, median, need)
	}
}

// valid says whether a result is what the schema says.
func valid(t *testing.T, r Result) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../docs/schema/profile.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%v in %s", err, text)
	}
}

func TestFunctionsThatFail(t *testing.T) {
	needs(t)
	spec := Spec{Argv: self(t, "complain"), Shares: []float64{0.5}, Sizes: []int{60}, Window: 100 * time.Millisecond}
	if _, err := Measure(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("a function that ends: %v", err)
	}
	gone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	spec.Argv = self(t, "swallow")
	if _, err := Measure(ctx, spec); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a function that forwards nothing: %v", err)
	}
	gone(t)
}

// A machine with RAPL has a meter of energy, one without says so.
func TestEnergy(t *testing.T) {
	root := t.TempDir()
	e := energy{root: root}
	if _, err := e.Read(nil); !errors.Is(err, ErrNotHere) {
		t.Errorf("without counters: %v", err)
	}
	for i, text := range []string{"1500000\n", "500000\n"} {
		dir := filepath.Join(root, fmt.Sprintf("intel-rapl:%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "energy_uj"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := e.Read(nil); got != 2 || err != nil {
		t.Errorf("%g J, %v", got, err)
	}
}
