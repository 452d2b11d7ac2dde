package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/lab/guest"
	"sublet/vnet"
)

// What a machine may use: its processor, its memory with that of its emulation, and
// what is kept of its serial line.
const (
	hostileShare  = 0.5
	hostileMemory = 256 << 20
	hostileLog    = 4<<20 + 1<<20 // the log, and what comes before it is cut
)

// A machine that floods its serial line and its link, keeps its processor busy and
// fills its memory and its disk takes what it was given, and nothing of a leased link
// beside it; its console can be used meanwhile, and its lease ends at once.
//
//	leased, 60M    a ====== backbone ====== b
//	best effort    m1 (QEMU) ---- 100M ---- p1
func TestSoakHostileMachine(t *testing.T) {
	images := t.TempDir()
	guest.Disk(t, filepath.Join(images, "small.raw"))
	l := newLab(t, narrow, "--images", images)
	leased := l.tenants(alice)[0]
	leased.up(pair("net", fmt.Sprintf("rate: %s", effortLeased)))
	l.up(fmt.Sprintf(`network: lan
nodes:
  - {name: m1, kind: vm, image: small.raw, cpu: %g, memory: 256MiB, disk: 64MiB, host: h1}
  - {name: p1, host: h2, run: [{cmd: [python3, -c, "import socket\nS = socket.create_server(('', 9))\nwhile 1:\n c = S.accept()[0]\n while c.recv(1 << 16): pass"], ready: 9}]}
links:
  - {name: wire, ends: [m1, p1]}
`, hostileShare))
	qemu := l.qemu()
	l.types("{ while :; do cat /bin/busybox; done; } & true")
	l.types("{ while :; do nc 10.0.0.2 9 </dev/zero >/dev/null; done; } & true") // it resolves no names
	l.types("{ while :; do :; done; } & true")
	l.isFlooded()
	l.machineIsBounded(qemu)
	stall.Try(t, func() (lacked float64, wrong error) {
		r := leased.sublet("check", "net", "-o", "json", "--duration", "3s")
		for _, k := range decode[vnet.Verdict](t, r.out).Links {
			off, err := effortOff(k)
			lacked, wrong = max(lacked, off), errors.Join(wrong, err)
		}
		return lacked, wrong
	})
	l.machineIsBounded(qemu)
	if out := l.must("logs", "lan/m1"); len(out) < 256<<10 {
		t.Errorf("it has flooded its serial line with %d bytes only", len(out))
	}
	l.types("{ cat /dev/zero >/dev/vda; cat /dev/zero >/full; } & true")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		l.machineIsBounded(qemu)
	}
	watch := stall.Start()
	l.must("down", "lan")
	watch.InTime(t, 15*time.Second, "the end of its lease")
	if l.qemu() != 0 {
		t.Error("the machine lives on")
	}
	leased.must("exec", "net/a", "--", "true")
	l.settled()
}

// machineIsBounded holds what the machine lan/m1 has against what it may have.
func (l *lab) machineIsBounded(qemu int) {
	l.t.Helper()
	if now := l.qemu(); now != qemu {
		l.t.Fatalf("its emulator was %d and is %d", qemu, now)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", qemu))
	if err != nil {
		l.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
	if kib, err := strconv.Atoi(strings.Fields(rest)[0]); err != nil || kib<<10 > hostileMemory {
		l.t.Errorf("the emulator has %d KiB of %d, %v", kib, hostileMemory>>10, err)
	}
	used, began := processorTime(l.t, qemu), time.Now()
	time.Sleep(2 * time.Second) // the measurement itself
	if part := (processorTime(l.t, qemu) - used).Seconds() / time.Since(began).Seconds(); part > 1.1*hostileShare {
		l.t.Errorf("it has %.2f processors of %.2f", part, hostileShare)
	}
	logs := matches(filepath.Join(l.run, "*", "h1", "root.lan.m1", "log"))
	if len(logs) != 1 {
		l.t.Fatalf("its logs are %v", logs)
	}
	if info, err := os.Stat(logs[0]); err != nil || info.Size() > hostileLog {
		l.t.Errorf("its log has %d bytes, %v", info.Size(), err)
	}
	if out := l.must("logs", "lan/m1"); len(out) > hostileLog {
		l.t.Errorf("%d bytes of its log are shown", len(out))
	}
}

// processorTime is what a process has had, in ticks of a hundredth of a second.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	ticks := 0
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
