package lookup_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
)

func mac(n uint32) (m vxswitch.MAC) {
	m[0] = 2
	binary.BigEndian.PutUint32(m[2:], n)
	return m
}

var broadcast = vxswitch.MAC{255, 255, 255, 255, 255, 255}

func ports(s vxswitch.PortSet) (list []int) {
	for i := s.Next(0); i >= 0; i = s.Next(i + 1) {
		list = append(list, i)
	}
	return list
}

func check(t *testing.T, f vxswitch.Forwarder, now time.Duration, in int, h vxswitch.Header, want ...int) {
	t.Helper()
	var out vxswitch.PortSet
	f.Forward(vxswitch.Time(now), in, &h, &out)
	got := ports(out)
	if len(got) != len(want) {
		t.Fatalf("%v -> %v from port %d goes to %v, want %v", h.Src, h.Dst, in, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%v -> %v from port %d goes to %v, want %v", h.Src, h.Dst, in, got, want)
		}
	}
}

func TestLearningFloodsUntilItKnows(t *testing.T) {
	l := lookup.NewLearning(4, time.Minute, 0)
	a, b := mac(1), mac(2)
	check(t, l, 0, 0, vxswitch.Header{Src: a, Dst: b}, 1, 2, 3)
	check(t, l, 1, 2, vxswitch.Header{Src: b, Dst: a}, 0)
	check(t, l, 2, 0, vxswitch.Header{Src: a, Dst: b}, 2)
	check(t, l, 3, 0, vxswitch.Header{Src: a, Dst: broadcast}, 1, 2, 3)
	check(t, l, 4, 2, vxswitch.Header{Src: mac(3), Dst: b}) // to its own port: nowhere
	check(t, l, 5, 3, vxswitch.Header{Src: b, Dst: a}, 0)   // b has moved
	check(t, l, 6, 0, vxswitch.Header{Src: a, Dst: b}, 3)
	check(t, l, 2*time.Minute, 0, vxswitch.Header{Src: a, Dst: b}, 1, 2, 3) // aged
}

// TestLearningHoldsNoMoreThanItMay: invented sources neither grow the table nor
// push out those that are used.
func TestLearningHoldsNoMoreThanItMay(t *testing.T) {
	l := lookup.NewLearning(2, time.Minute, 100)
	check(t, l, 0, 1, vxswitch.Header{Src: mac(0), Dst: broadcast}, 0)
	for i := range uint32(5000) {
		check(t, l, 1, 0, vxswitch.Header{Src: mac(i + 1), Dst: mac(0)}, 1)
	}
	if l.Len() != 100 {
		t.Fatalf("%d addresses known, want 100", l.Len())
	}
	for i := range uint32(300) {
		check(t, l, 2*time.Minute, 1, vxswitch.Header{Src: mac(1e6 + i), Dst: broadcast}, 0)
	}
	check(t, l, 2*time.Minute, 0, vxswitch.Header{Src: mac(1e6 + 299), Dst: mac(1e6)}, 1)
	if l.Len() > 100 {
		t.Fatalf("%d addresses known, want at most 100", l.Len())
	}
}

// frame puts parts behind one another.
func frame(parts ...[]byte) (f []byte) {
	for _, p := range parts {
		f = append(f, p...)
	}
	return f
}

var (
	ethernet = frame(append([]byte{2, 0, 0, 0, 0, 1}, 2, 0, 0, 0, 0, 2))
	tag7     = []byte{0x81, 0x00, 0x20, 0x07}
	ip4      = []byte{0x45, 46 << 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	udpVXLAN = []byte{0x30, 0x39, 0x12, 0xb5, 0, 0, 0, 0}
	vxlan42  = []byte{8, 0, 0, 0, 0, 0, 42, 0}
)

func TestParseReadsWhatLookupsLookAt(t *testing.T) {
	var h vxswitch.Header
	lookup.Parse(frame(ethernet, tag7, []byte{8, 0}, ip4, udpVXLAN, vxlan42), &h)
	want := vxswitch.Header{
		Dst: mac(1), Src: mac(2), EtherType: 0x800, VLAN: 7, DSCP: 46, Proto: 17, SrcPort: 12345, DstPort: 4789,
		SrcIP: netip.MustParseAddr("10.0.0.1"), DstIP: netip.MustParseAddr("10.0.0.2"), VNI: 42, HasVNI: true,
	}
	if h != want {
		t.Errorf("read\n%+v, want\n%+v", h, want)
	}
	lookup.Parse(frame(ethernet, []byte{0x88, 0x47, 0, 1, 0x91, 0x40}), &h)
	if h.Label != 25 || !h.HasLabel {
		t.Errorf("label %d (%v), want 25", h.Label, h.HasLabel)
	}
	ip6 := append([]byte{0x6b, 0x80, 0, 0, 0, 0, 6, 64}, make([]byte, 32)...)
	ip6[8], ip6[24], ip6[39] = 0xfd, 0xfd, 1
	lookup.Parse(frame(ethernet, []byte{0x86, 0xdd}, ip6, []byte{0, 80, 1, 187, 0, 0, 0, 0}), &h)
	if h.DSCP != 46 || h.DstIP != netip.MustParseAddr("fd00::1") || h.SrcPort != 80 || h.DstPort != 443 {
		t.Errorf("read %+v of an IPv6 frame", h)
	}
	lookup.Parse(frame(ethernet, []byte{8, 0}, fragment(), udpVXLAN, vxlan42), &h)
	if h.HasVNI || h.DstPort != 0 {
		t.Error("ports were read from a later fragment, where there are none")
	}
}

func fragment() []byte {
	f := append([]byte(nil), ip4...)
	f[7] = 100
	return f
}

func FuzzParse(f *testing.F) {
	f.Add(frame(ethernet, tag7, []byte{8, 0}, ip4, udpVXLAN, vxlan42))
	f.Add(frame(ethernet, []byte{0x88, 0x47, 0, 1, 0x91, 0x40}))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, shorter vxswitch.Header
		ok := lookup.Parse(b, &h)
		if ok != (len(b) >= 14) {
			t.Fatalf("%d bytes: %v", len(b), ok)
		}
		if h.VLAN > 4095 || h.VNI >= 1<<24 || h.Label >= 1<<20 || h.DSCP > 63 {
			t.Fatalf("out of range: %+v", h)
		}
		// What is read of a frame that was cut off is true of the whole one.
		if lookup.Parse(b[:len(b)/2], &shorter) && (shorter.Dst != h.Dst || shorter.HasVNI && shorter.VNI != h.VNI) {
			t.Fatalf("%+v read of a part, %+v of the whole", shorter, h)
		}
	})
}

// Planned stations are known before they send and not learned elsewhere;
// questions for them go to them alone, by either protocol.
func TestPlannedStationsAreNotFlooded(t *testing.T) {
	l := lookup.NewLearning(4, time.Minute, 2)
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	l.Plan([]lookup.Station{{Address: a, MAC: mac(1), Port: 0}, {Address: b, MAC: mac(2), Port: 2}})
	check(t, l, 0, 0, vxswitch.Header{Src: mac(1), Dst: mac(2)}, 2)
	check(t, l, 1, 3, vxswitch.Header{Src: mac(2), Dst: mac(1)}, 0) // who says they are b is not believed
	check(t, l, 2, 0, vxswitch.Header{Src: mac(1), Dst: mac(2)}, 2)
	check(t, l, 3, 0, vxswitch.Header{Src: mac(1), Dst: broadcast, Target: b}, 2)
	check(t, l, 4, 0, vxswitch.Header{Src: mac(1), Dst: broadcast, Target: a}, 1, 2, 3) // a tells where it is
	check(t, l, 5, 0, vxswitch.Header{Src: mac(1), Dst: broadcast, Target: netip.MustParseAddr("10.0.0.9")}, 1, 2, 3)
	check(t, l, 6, 0, vxswitch.Header{Src: mac(1), Dst: vxswitch.MAC{0x33, 0x33}, Target: netip.MustParseAddr("fe80::ff:fe00:2")}, 2)
	check(t, l, 7, 0, vxswitch.Header{Src: mac(1), Dst: broadcast}, 1, 2, 3)
	check(t, l, 8, 3, vxswitch.Header{Src: mac(3), Dst: mac(4)}, 0, 1, 2)
	if l.Len() != 1 {
		t.Errorf("%d addresses are learned, want that of the stranger", l.Len())
	}
	next := lookup.NewLearning(4, time.Minute, 2)
	next.Plan([]lookup.Station{{Address: b, MAC: mac(2), Port: 1}})
	next.Keep(l)
	check(t, next, 9, 0, vxswitch.Header{Src: mac(1), Dst: mac(2)}, 1)
	check(t, next, 10, 0, vxswitch.Header{Src: mac(1), Dst: mac(3)}, 3) // learned before
}

// TestQuestionsAreRead: whose address a frame asks for.
func TestQuestionsAreRead(t *testing.T) {
	arp := make([]byte, 42)
	binary.BigEndian.PutUint16(arp[12:], 0x0806)
	copy(arp[14:], []byte{0, 1, 8, 0, 6, 4, 0, 1})
	copy(arp[38:], []byte{10, 0, 0, 9})
	nd := make([]byte, 78)
	binary.BigEndian.PutUint16(nd[12:], 0x86dd)
	nd[14], nd[20], nd[54] = 0x60, 58, 135
	copy(nd[62:], netip.MustParseAddr("fd00::7").AsSlice())
	for want, frame := range map[string][]byte{"10.0.0.9": arp, "fd00::7": nd} {
		var h vxswitch.Header
		if lookup.Parse(frame, &h); h.Target.String() != want {
			t.Errorf("asks for %v, want %s", h.Target, want)
		}
		for n := range frame[:len(frame)-1] {
			if lookup.Parse(frame[:n], &h); h.Target.IsValid() && n < 42 {
				t.Errorf("%d bytes of a question for %s ask for %v", n, want, h.Target)
			}
		}
	}
	arp[21] = 2 // an answer
	var h vxswitch.Header
	if lookup.Parse(arp, &h); h.Target.IsValid() {
		t.Errorf("an answer asks for %v", h.Target)
	}
}
