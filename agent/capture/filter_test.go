package capture

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What String writes is read again; what is no program is refused, by its text or
// by the kernel.
func TestFilterText(t *testing.T) {
	arp := Filter{{Code: 40, K: 12}, {Code: 21, Jf: 1, K: 0x0806}, {Code: 6, K: 1 << 18}, {Code: 6}}
	if got, err := ParseFilter(arp.String()); err != nil || got.String() != arp.String() {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "1", "1,2,3", "1,256,0,0", "65536,0,0,0", "1,0,0,-1", "6,0,0,0;", strings.Repeat("6,0,0,0;", MaxFilter) + "6,0,0,0"} {
		if f, err := ParseFilter(text); err == nil {
			t.Errorf("%.20q: %v", text, f)
		}
	}
	near, _ := veth(t)
	for _, f := range []Filter{{{Code: 40, K: 12}}, {{Code: 5, K: 9}, {Code: 6}}, {{Code: 999}}} {
		err := Stream(t.Context(), near, "c0", "a/c0", "", Options{Filter: f, MaxDuration: time.Second}, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), unix.EINVAL.Error()) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// Only what a filter chooses is captured.
func TestFilterChooses(t *testing.T) {
	near, _ := veth(t)
	frame := func(kind byte) []byte {
		return append(append(bytes.Repeat([]byte{0xff}, 6), 2, 0, 0, 0, 0, 1, 0x88, kind), bytes.Repeat([]byte{kind}, 46)...)
	}
	var file bytes.Buffer
	wanted := Filter{{Code: 40, K: 12}, {Code: 21, Jf: 1, K: 0x88b5}, {Code: 6, K: 1 << 18}, {Code: 6}}
	done := make(chan error, 1)
	ready := &firstWrite{Writer: &file, done: make(chan struct{})}
	go func() {
		done <- Stream(t.Context(), near, "c0", "a/c0", "", Options{Filter: wanted, MaxPackets: 1, MaxDuration: 20 * time.Second}, ready)
	}()
	<-ready.done
	send(t, near, frame(0xb6))
	send(t, near, frame(0xb5))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file.Bytes(), frame(0xb5)) || bytes.Contains(file.Bytes(), frame(0xb6)) {
		t.Error("not what the filter chooses")
	}
}
