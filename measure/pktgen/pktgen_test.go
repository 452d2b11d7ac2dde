package pktgen

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
)

// pair is two namespaces with a veth pair between them.
func pair(t *testing.T) (a, z Place) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	var places [2]Place
	for i := range places {
		ns, err := kernel.NewNamespace(func() error { return kernel.Sysctl("ipv6/conf/default/disable_ipv6", "1") })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		places[i] = Place{NS: ns, Device: "eth0", Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
	}
	in(t, places[0], "ip link add eth0 type veth peer name far")
	in(t, places[0], "ip link set far netns /proc/self/fd/3 name eth0", places[1])
	for _, p := range places {
		in(t, p, "ip addr add "+p.Addr.String()+"/24 dev eth0")
		in(t, p, "ip link set eth0 up")
	}
	return places[0], places[1]
}

// in runs a command in a place, other places' namespaces as descriptors from 3.
func in(t *testing.T, p Place, line string, others ...Place) {
	t.Helper()
	argv := strings.Fields(line)
	cmd := exec.Command(argv[0], argv[1:]...)
	for _, o := range others {
		cmd.ExtraFiles = append(cmd.ExtraFiles, o.NS)
	}
	err := kernel.In(p.NS, func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s: %s", line, out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// least measures for longer and longer until a busy machine has let enough of
// it happen.
func least(t *testing.T, what string, enough float64, measure func(window time.Duration) (float64, error)) {
	t.Helper()
	rate := 0.0
	for window := 50 * time.Millisecond; window < 10*time.Second && rate < enough; window *= 5 {
		var err error
		if rate, err = measure(window); err != nil {
			t.Fatal(err)
		}
	}
	if rate < enough {
		t.Errorf("%s: only %.0f a second", what, rate)
	}
}

func TestWhatArrivesIsCounted(t *testing.T) {
	a, z := pair(t)
	for _, size := range []int{60, 1514} {
		least(t, fmt.Sprintf("frames of %d bytes", size), 1000, func(window time.Duration) (float64, error) {
			return Arrive(a, z, size, 0, window)
		})
	}
}

func TestFramesOfTheKernel(t *testing.T) {
	a, z := pair(t)
	for _, p := range []Place{a, z} { // ends are found by the files that namespaces are bound to
		file := filepath.Join(t.TempDir(), "ns")
		if err := kernel.Bind(p.NS, file); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { kernel.Unbind(file) })
	}
	least(t, "frames", 1000, func(window time.Duration) (float64, error) { return Enter(a, z, 60, 0, window) })
	a.Device = "lo"
	if _, _, err := a.far(); !errors.Is(err, ErrNoFar) {
		t.Errorf("a device without a pair: %v", err)
	}
}

func TestWhatLeavesIsCountedAndGoesNoFurther(t *testing.T) {
	a, z := pair(t)
	arrived, err := CountAt(z, Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer arrived.Close()
	least(t, "frames", 1000, func(window time.Duration) (float64, error) { return Leave(a, z, a, 60, 0, window) })
	if n := arrived.Packets(); n > 1 { // one resolved the neighbour
		t.Errorf("%d frames arrived although they were dropped before", n)
	}
}

func TestStreamAndPing(t *testing.T) {
	a, z := pair(t)
	least(t, "bits of a stream", 1e6, func(window time.Duration) (float64, error) { return Stream(a, z, 0, 0, window) })
	p50, p99, err := Ping(a, z, 0, 100)
	if err != nil || p50 <= 0 || p99 < p50 {
		t.Errorf("round trips of %.1f us, 99 %% within %.1f us, %v", p50, p99, err)
	}
}

func TestNobodyThere(t *testing.T) {
	a, z := pair(t)
	z.Addr = netip.MustParseAddr("10.0.0.9")
	if _, err := Arrive(a, z, 60, 0, 10*time.Millisecond); err == nil {
		t.Error("frames arrive at an address nobody has")
	}
}
