package inband

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/net/bpf"
)

func testFilter() *Filter {
	return NewFilter([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.254:6653"), netip.MustParseAddrPort("[fd00::fe]:6653")}, []netip.Addr{netip.MustParseAddr("10.0.0.1")})
}

// machine is the Filter as the kernel has it.
func machine(t testing.TB, f *Filter) func(frame []byte) bool {
	list := f.instructions()[3:] // a machine in user space knows no tag beside a frame
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	return func(frame []byte) bool {
		n, err := vm.Run(frame)
		return err == nil && n > 0
	}
}

func arpFrame(op uint16, src, dst mac, sender, target string) []byte {
	b := append(append(append([]byte{}, dst[:]...), src[:]...), 8, 6, 0, 1, 8, 0, 6, 4, byte(op>>8), byte(op))
	s, t := netip.MustParseAddr(sender).As4(), netip.MustParseAddr(target).As4()
	b = append(append(append(b, src[:]...), s[:]...), dst[:]...)
	return append(b, t[:]...)
}

func tcpFrame(src, dst mac, from, to string, id uint16) []byte {
	b := append(append([]byte{}, dst[:]...), src[:]...)
	f, t := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	if f.Addr().Is4() {
		b = append(b, 8, 0, 0x45, 0, 0, 40, byte(id>>8), byte(id), 0x40, 0, 64, tcp, 0, 0)
	} else {
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, tcp, 64)
	}
	b = append(append(b, f.Addr().AsSlice()...), t.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, f.Port()), t.Port())
	return append(b, make([]byte, 16)...)
}

func ndFrame(kind byte, from, to, target string) []byte {
	b := append(make([]byte, 12), 0x86, 0xdd, 0x60, 0, 0, 0, 0, ndLen, icmp6, 255)
	b = append(append(b, netip.MustParseAddr(from).AsSlice()...), netip.MustParseAddr(to).AsSlice()...)
	b = append(b, kind, 0, 0, 0, 0, 0, 0, 0)
	return append(b, netip.MustParseAddr(target).AsSlice()...)
}

func edited(b []byte, at int, v byte) []byte {
	b[at] = v
	return b
}

// What is control, and nothing else is.
func TestWhatIsControl(t *testing.T) {
	f := testFilter()
	kernel := machine(t, f)
	var a, b mac
	to := func() []byte { return tcpFrame(a, b, "10.0.0.7:40000", "10.0.0.254:6653", 0) }
	for _, c := range []struct {
		what  string
		frame []byte
		want  Control
		is    bool
	}{
		{"to the controller", to(), Control{Asked: netip.MustParseAddr("10.0.0.254")}, true},
		{"from the controller", tcpFrame(a, b, "10.0.0.254:6653", "10.0.0.7:40000", 0), Control{Asked: netip.MustParseAddr("10.0.0.254"), From: true}, true},
		{"another port of its", tcpFrame(a, b, "10.0.0.7:40000", "10.0.0.254:80", 0), Control{}, false},
		{"another host's port", tcpFrame(a, b, "10.0.0.7:40000", "10.0.0.8:6653", 0), Control{}, false},
		{"UDP", edited(to(), 23, 17), Control{}, false},
		{"a later fragment", edited(to(), 21, 1), Control{}, false},
		{"a header that is too short", edited(to(), 14, 0x44), Control{}, false},
		{"cut off", to()[:50], Control{}, false},
		{"a gateway's port", tcpFrame(a, b, "10.0.0.7:1", "10.0.0.1:6653", 0), Control{}, false},
		{"IPv6 to it", tcpFrame(a, b, "[fd00::7]:40000", "[fd00::fe]:6653", 0), Control{Asked: netip.MustParseAddr("fd00::fe")}, true},
		{"IPv6 from it", tcpFrame(a, b, "[fd00::fe]:6653", "[fd00::7]:40000", 0), Control{Asked: netip.MustParseAddr("fd00::fe"), From: true}, true},
		{"IPv6 elsewhere", tcpFrame(a, b, "[fd00::fe]:6654", "[fd00::7]:40000", 0), Control{}, false},
		{"who has the controller", arpFrame(1, a, b, "10.0.0.7", "10.0.0.254"), Control{Asked: netip.MustParseAddr("10.0.0.254"), Asks: true}, true},
		{"the controller asks", arpFrame(1, a, b, "10.0.0.254", "10.0.0.7"), Control{Asked: netip.MustParseAddr("10.0.0.254"), From: true}, true},
		{"who has the gateway", arpFrame(1, a, b, "10.0.0.7", "10.0.0.1"), Control{Asked: netip.MustParseAddr("10.0.0.1"), Asks: true}, true},
		{"who has a station", arpFrame(1, a, b, "10.0.0.7", "10.0.0.8"), Control{}, false},
		{"solicitation", ndFrame(135, "fd00::7", "ff02::1:ff00:fe", "fd00::fe"), Control{Asked: netip.MustParseAddr("fd00::fe"), Asks: true}, true},
		{"advertisement", ndFrame(136, "fd00::fe", "fd00::7", "fd00::fe"), Control{Asked: netip.MustParseAddr("fd00::fe"), From: true}, true},
		{"advertisement to it", ndFrame(136, "fd00::7", "fd00::fe", "fd00::7"), Control{Asked: netip.MustParseAddr("fd00::fe")}, true},
		{"redirect", ndFrame(137, "fd00::7", "fd00::8", "fd00::fe"), Control{}, false},
		{"solicitation of a station", ndFrame(135, "fd00::7", "ff02::1:ff00:8", "fd00::8"), Control{}, false},
		{"a tag", append(append(to()[:12:12], 0x81, 0, 0, 5), to()[12:]...), Control{}, false},
		{"nothing", nil, Control{}, false},
	} {
		got, is := f.Look(c.frame)
		if is != c.is || is && got != c.want {
			t.Errorf("%s: %+v %v, want %+v %v", c.what, got, is, c.want, c.is)
		}
		if k := kernel(c.frame); k != c.is {
			t.Errorf("%s: the program says %v, want %v", c.what, k, c.is)
		}
	}
}

// The kernel's program and Look agree about all frames: else control would be
// forwarded twice, or be lost.
func FuzzProgramIsTheFilter(f *testing.F) {
	var a mac
	for _, seed := range [][]byte{
		tcpFrame(a, a, "10.0.0.7:40000", "10.0.0.254:6653", 0), tcpFrame(a, a, "[fd00::fe]:6653", "[fd00::7]:40000", 0),
		arpFrame(1, a, a, "10.0.0.7", "10.0.0.254"), ndFrame(135, "fd00::7", "fd00::fe", "fd00::fe"), {},
	} {
		f.Add(seed, uint16(0), byte(0))
	}
	filter := testFilter()
	kernel := machine(f, filter)
	f.Fuzz(func(t *testing.T, frame []byte, at uint16, value byte) {
		frame = append([]byte(nil), frame...)
		if len(frame) > 0 {
			frame[int(at)%len(frame)] = value
		}
		if _, is := filter.Look(frame); is != kernel(frame) {
			t.Errorf("%x: Look says %v, the program %v", frame, is, !is)
		}
	})
}

// The largest filter is one that the kernel takes.
func TestProgramIsBounded(t *testing.T) {
	var controllers []netip.AddrPort
	var gateways []netip.Addr
	for i := range byte(20) {
		six := netip.AddrFrom16([16]byte{0: 0xfd, 15: i})
		controllers, gateways = append(controllers, netip.AddrPortFrom(six, 6653)), append(gateways, netip.AddrFrom16([16]byte{0: 0xfe, 15: i}))
	}
	f := NewFilter(controllers, gateways)
	list, err := f.Program()
	if err != nil || len(list) > 4096 {
		t.Fatalf("%d instructions, %v", len(list), err)
	}
	if len(f.Controllers()) != MaxControllers {
		t.Errorf("%d controllers", len(f.Controllers()))
	}
	machine(t, f)
}
