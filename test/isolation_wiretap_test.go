package test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// Every frame of a flood ends in a signature: whose it is and by which link it
// was sent.
type signature [8]byte

func signed(uid uint32, link byte) signature {
	s := signature{'S', 'L', 'i', 's'}
	binary.BigEndian.PutUint16(s[4:], uint16(uid))
	s[6], s[7] = link, 0x5a
	return s
}

// Pieces of classic BPF programs (linux/filter.h). Offsets are from the frame's
// start; a frame too short for a load is not counted.
func load(size uint16, offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: offset}
}

// loadTail loads a word, counted from the frame's end; X holds its length.
func loadTail(back uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: -back}
}

func jumpEqual(value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: yes, Jf: no}
}

func shift(bits uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: bits}
}

var (
	loadLength = unix.SockFilter{Code: unix.BPF_LDX | unix.BPF_W | unix.BPF_LEN}
	dontCount  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	doCount    = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 64}
)

// exactly counts frames with one signature.
func exactly(s signature) []unix.SockFilter {
	return []unix.SockFilter{
		loadLength,
		loadTail(8), jumpEqual(binary.BigEndian.Uint32(s[:]), 0, 3),
		loadTail(4), jumpEqual(binary.BigEndian.Uint32(s[4:]), 0, 1),
		doCount, dontCount,
	}
}

// anyBut counts signed frames whose signature is another one.
func anyBut(s signature) []unix.SockFilter {
	return []unix.SockFilter{
		loadLength,
		loadTail(8), jumpEqual(binary.BigEndian.Uint32(s[:]), 0, 3),
		loadTail(4), jumpEqual(binary.BigEndian.Uint32(s[4:]), 1, 0),
		doCount, dontCount,
	}
}

// anything counts signed frames.
func anything() []unix.SockFilter { return anyBut(signature{'S', 'L', 'i', 's'}) }

// outside counts a tenant's signed frames that neither travel in the VXLAN
// packets of its own network, as these are seen below the tunnels, nor between
// those and its fabric by its trunk, a device of this number. The network's identifiers are vnis.
func outside(uid, trunk uint32, vnis ...uint32) []unix.SockFilter {
	count := 14 + uint8(len(vnis)) // where the program ends
	dont := count + 1
	program := []unix.SockFilter{
		loadLength,
		loadTail(8), jumpEqual(binary.BigEndian.Uint32([]byte("SLis")), 0, dont-3),
		loadTail(4), shift(16), jumpEqual(uid, 0, dont-6),
		load(unix.BPF_W, deviceNumber), jumpEqual(trunk, dont-8, 0),
		load(unix.BPF_H, 12), jumpEqual(unix.ETH_P_IP, 0, count-10),
		load(unix.BPF_H, 36), jumpEqual(4789, 0, count-12),
		load(unix.BPF_W, 46), shift(8),
	}
	for i, vni := range vnis {
		program = append(program, jumpEqual(vni, dont-15-uint8(i), 0))
	}
	return append(program, doCount, dontCount)
}

// deviceNumber is where a filter finds the number of a packet's device
// (SKF_AD_OFF + SKF_AD_IFINDEX).
const deviceNumber = 0xfffff000 + 8

// trunkOn is the number of the tenant's trunk on a node of the substrate; 0: it
// has none there.
func (c *tenant) trunkOn(node string) (number uint32) {
	c.t.Helper()
	within(c.t, c.host(node), func() error {
		device, err := net.InterfaceByName(plan.Trunk(vnet.LeaseID{Tenant: vnet.TenantID(c.name()), Network: "net"}))
		if err == nil {
			number = uint32(device.Index)
		}
		return nil
	})
	return number
}

// wiretap counts the frames that pass any device of a namespace and match.
type wiretap struct {
	t     *testing.T
	what  string
	fd    int
	total uint32
}

func tap(t *testing.T, namespace, what string, program []unix.SockFilter) *wiretap {
	t.Helper()
	w := &wiretap{t: t, what: what}
	within(t, namespace, func() (err error) {
		w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // deaf for now
		return err
	})
	t.Cleanup(func() { unix.Close(w.fd) })
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(w.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 2)
	binary.BigEndian.PutUint16(all, unix.ETH_P_ALL)
	if err := unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// count is how many frames matched until now, read or not.
func (w *wiretap) count() uint32 {
	w.t.Helper()
	var stats struct{ packets, drops uint32 }
	size := uint32(unsafe.Sizeof(stats))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(w.fd), unix.SOL_PACKET, unix.PACKET_STATISTICS,
		uintptr(unsafe.Pointer(&stats)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		w.t.Fatal(errno)
	}
	w.total += stats.packets // the kernel's count starts anew
	return w.total
}

// first is the beginning of the first frame that matched.
func (w *wiretap) first() string {
	frame := make([]byte, 64)
	n, _, err := unix.Recvfrom(w.fd, frame, unix.MSG_DONTWAIT)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("% x", frame[:n])
}

// silent says that nothing must have passed.
func (w *wiretap) silent() {
	w.t.Helper()
	if n := w.count(); n != 0 {
		w.t.Errorf("%s: %d frames, the first begins %s", w.what, n, w.first())
	}
}

// snmp reads a namespace's IP counters, such as Ip.InReceives.
func snmp(t *testing.T, namespace string) map[string]uint64 {
	t.Helper()
	counters := map[string]uint64{}
	within(t, namespace, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
			for j := 1; j < len(names); j++ {
				value, _ := strconv.ParseUint(values[j], 10, 64) // -1 is a setting, not a counter
				counters[strings.TrimSuffix(names[0], ":")+"."+names[j]] = value
			}
		}
		return nil
	})
	return counters
}
