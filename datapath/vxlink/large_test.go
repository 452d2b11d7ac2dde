package vxlink

import "testing"

// Frames of large packets that a class dropped are found by bytes that neither left nor
// wait; what was lost elsewhere is not among them, and what probes add does not hide them.
func TestFramesOfLargePackets(t *testing.T) {
	const frame = 1450 + header + 50
	l := largeAt(vxlinkRecord{IsTunnel: 1, Mtu: 1450, Address: 4}, false)
	read := func(came, sent, dropped, waiting uint64) uint64 {
		return l.add(vxlinkCounts{Packets: came, Bytes: came * (frame - 50)}, queued{sent * frame, dropped, waiting * frame})
	}
	for _, c := range []struct {
		what                         string
		came, sent, dropped, waiting uint64
		want                         uint64
	}{
		{"first", 1000, 1010, 3, 0, 0},
		{"all left", 2000, 2010, 3, 0, 0},
		{"some wait", 3000, 2990, 3, 20, 0},
		{"ten packets of ten frames", 4000, 3890, 13, 20, 90},
		{"as many wait, none dropped", 5000, 4890, 13, 20, 90},
		{"three of one frame, fewer wait", 6000, 5907, 16, 0, 90},
		{"probes left, none dropped", 6000, 5950, 16, 0, 90},
		{"one of 64", 7000, 6886, 17, 0, 153},
		{"lost elsewhere after the class", 8000, 7886, 17, 0, 153},
		{"the class made anew", 9000, 10, 0, 0, 153},
		{"an hour of probes, then one of ten", 9100, 4200, 1, 0, 153},
		{"and ten of ten", 10100, 5100, 11, 0, 153 + 89},
		{"counters emptied", 100, 5200, 12, 0, 0},
	} {
		if got := read(c.came, c.sent, c.dropped, c.waiting); got != c.want {
			t.Errorf("%s: %d frames, %d are wanted", c.what, got, c.want)
		}
	}
	young := largeAt(vxlinkRecord{IsTunnel: 1, Mtu: 1450, Address: 4}, true)
	if got := young.add(vxlinkCounts{Packets: 100, Bytes: 100 * (frame - 50)}, queued{60 * frame, 4, 0}); got != 36 {
		t.Errorf("dropped before the first reading: %d frames", got)
	}
	if none := largeAt(vxlinkRecord{Mtu: 1450}, true); none.full != 0 {
		t.Error("at no tunnel")
	}
}
